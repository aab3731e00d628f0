package compose

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
)

// Keep is the desired form of an observed child that is to stay as it is: its name, our labels and what it was asked
// for, without what the API server and its controller added.
func Keep(observed client.Object) (client.Object, error) {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(observed)
	if err != nil {
		return nil, err
	}
	in := &unstructured.Unstructured{Object: raw}
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(in.GroupVersionKind())
	out.SetNamespace(in.GetNamespace())
	out.SetName(in.GetName())
	labels := map[string]string{}
	for _, k := range []string{names.LabelTenant, names.LabelEnvironment, names.LabelComposite} {
		if v, ok := in.GetLabels()[k]; ok {
			labels[k] = v
		}
	}
	out.SetLabels(labels)
	// Crossplane takes away what it once applied and is not desired any more.
	out.SetFinalizers([]string{names.Finalizer})
	if p, ok, _ := unstructured.NestedMap(raw, "spec", "forProvider"); ok {
		_ = unstructured.SetNestedMap(out.Object, p, "spec", "forProvider")
	}
	return out, nil
}
