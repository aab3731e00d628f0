package compose

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Machinery is what Crossplane keeps on a composite. Nothing else reads those fields, so that a kind can become a
// namespaced composite, which has no claim, by a change here alone.
type Machinery struct {
	// UID of the composite.
	UID types.UID
	// Namespace and Name of what the user wrote.
	Namespace, Name string
}

// MachineryOf reads the machinery fields of a composite.
func MachineryOf(xr *unstructured.Unstructured) (Machinery, error) {
	m := Machinery{UID: xr.GetUID(), Namespace: xr.GetNamespace(), Name: xr.GetName()}
	if m.UID == "" {
		return m, fmt.Errorf("composite %s %q has no UID", xr.GetKind(), xr.GetName())
	}
	if m.Namespace != "" {
		return m, nil
	}
	m.Namespace, _, _ = unstructured.NestedString(xr.Object, "spec", "claimRef", "namespace")
	m.Name, _, _ = unstructured.NestedString(xr.Object, "spec", "claimRef", "name")
	if m.Namespace == "" || m.Name == "" {
		return m, fmt.Errorf("composite %s %q has no claim: apply a claim instead of a composite", xr.GetKind(), xr.GetName())
	}
	return m, nil
}
