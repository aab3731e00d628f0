package argocd

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An edit makes another state of an object.
type edit func(*unstructured.Unstructured)

// with is a copy of an object after edits.
func with(o *unstructured.Unstructured, edits ...edit) *unstructured.Unstructured {
	u := o.DeepCopy()
	for _, e := range edits {
		e(u)
	}
	return u
}

// unseen by any controller.
func unseen(u *unstructured.Unstructured) { delete(u.Object, "status") }

// changed since its conditions were written.
func changed(u *unstructured.Unstructured) { u.SetGeneration(u.GetGeneration() + 1) }

// leaving is being deleted.
func leaving(u *unstructured.Unstructured) {
	set(u, "2026-11-30T12:00:00Z", "metadata", "deletionTimestamp")
}

// pausedBy an annotation, as an operator does it.
func pausedBy(u *unstructured.Unstructured) {
	a := maps.Clone(u.GetAnnotations())
	if a == nil {
		a = map[string]string{}
	}
	a["crossplane.io/paused"] = "true"
	u.SetAnnotations(a)
}

// set a field.
func set(u *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		panic(err)
	}
}

// field is an edit that sets one.
func field(value any, path ...string) edit {
	return func(u *unstructured.Unstructured) { set(u, value, path...) }
}

// says is an edit that writes a condition about the object as it is, in the place of the one of its type or at the end.
func says(kind, status, reason, message string) edit {
	return func(u *unstructured.Unstructured) {
		c := map[string]any{
			"type": kind, "status": status, "reason": reason, "message": message,
			"observedGeneration": u.GetGeneration(), "lastTransitionTime": "2026-11-30T12:00:00Z",
		}
		all := conditions(u)
		if i := slices.IndexFunc(all, isOf(kind)); i >= 0 {
			all[i] = c
		} else {
			all = append(all, c)
		}
		set(u, all, "status", "conditions")
	}
}

// silent is an edit that removes a condition.
func silent(kind string) edit {
	return func(u *unstructured.Unstructured) {
		set(u, slices.DeleteFunc(conditions(u), isOf(kind)), "status", "conditions")
	}
}

// backwards has the conditions in the opposite order.
func backwards(u *unstructured.Unstructured) {
	all := conditions(u)
	slices.Reverse(all)
	set(u, all, "status", "conditions")
}

func conditions(u *unstructured.Unstructured) []any {
	all, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		panic(err)
	}
	return all
}

func isOf(kind string) func(any) bool {
	return func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == kind
	}
}
