package compose

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Conditioned is a managed resource with conditions.
type Conditioned interface {
	client.Object
	GetCondition(t xpv2.ConditionType) xpv2.Condition
}

// IsReady reports whether an observed managed resource is ready for what it is asked for now: the condition is of its
// present generation.
func IsReady(mr Conditioned) bool {
	c := mr.GetCondition(xpv2.TypeReady)
	return c.Status == "True" && (c.ObservedGeneration == 0 || c.ObservedGeneration >= mr.GetGeneration())
}

// Satisfied reports whether the observed child is ready and its spec is what desired asks for, so that a spec that was
// changed in this very call does not count as ready.
func Satisfied(in Input, name string, observed Conditioned, desired client.Object) (bool, error) {
	if !IsReady(observed) {
		return false, nil
	}
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return false, err
	}
	wantSpec, _, _ := unstructured.NestedMap(want, "spec", "forProvider")
	haveSpec, _, _ := unstructured.NestedMap(in.Children[name].Object, "spec", "forProvider")
	return contains(haveSpec, wantSpec), nil
}

// contains reports whether have holds everything that want does. Have may hold more, such as the API server's defaults.
func contains(have, want any) bool {
	w, ok := want.(map[string]any)
	if !ok {
		return equality.Semantic.DeepEqual(have, want)
	}
	h, ok := have.(map[string]any)
	if !ok {
		return len(w) == 0 && have == nil
	}
	for k, v := range w {
		if !contains(h[k], v) {
			return false
		}
	}
	return true
}

// NotReady is a condition that does not hold because a managed resource is not ready, in that resource's own words. An
// error of its reconciler comes before the reason it gives for not being ready.
func NotReady(t xpv2.ConditionType, mr Conditioned) xpv2.Condition {
	if synced := mr.GetCondition(xpv2.TypeSynced); synced.Status == "False" {
		return False(t, synced.Reason, synced.Message)
	}
	ready := mr.GetCondition(xpv2.TypeReady)
	if ready.Status != "False" || ready.Reason == "" {
		return False(t, xpv2.ReasonCreating, "")
	}
	return False(t, ready.Reason, ready.Message)
}
