package kit

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// conditionsFrom reads the conditions of an object of any kind.
func conditionsFrom(u *unstructured.Unstructured, s *xpv2.ConditionedStatus) error {
	raw, ok, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil || !ok {
		return errors.Wrap(err, "cannot read status.conditions")
	}
	return errors.Wrap(runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"conditions": raw}, s),
		"cannot read status.conditions")
}

// conditionsTo writes the conditions of an object of any kind.
func conditionsTo(u *unstructured.Unstructured, s xpv2.ConditionedStatus) error {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		return errors.Wrap(err, "cannot write status.conditions")
	}
	raw, ok := m["conditions"].([]any)
	if !ok {
		raw = []any{}
	}
	return errors.Wrap(unstructured.SetNestedSlice(u.Object, raw, "status", "conditions"), "cannot write status.conditions")
}
