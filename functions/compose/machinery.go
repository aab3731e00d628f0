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

// responsive is Crossplane's condition for whether a composite hears of what it watches.
const responsive = "Responsive"

// Unresponsive reports whether Crossplane's circuit breaker is open for a composite: it had more events than one a second
// for a while, and hears of hardly any until the breaker closes.
func Unresponsive(xr *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(xr.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == responsive {
			return m["status"] == "False"
		}
	}
	return false
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
