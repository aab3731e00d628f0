package compose

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Composer makes the desired state of one kind of composite. It is pure: the same Input gives the same Output.
type Composer interface {
	// Compose returns what is desired. An error leaves everything as it was: it becomes a fatal result.
	Compose(in Input) (Output, error)
}

// ComposerFunc lets a function be a Composer.
type ComposerFunc func(in Input) (Output, error)

// Compose calls f.
func (f ComposerFunc) Compose(in Input) (Output, error) { return f(in) }

// Input is what was observed.
type Input struct {
	// Composite as it was observed.
	Composite *unstructured.Unstructured
	// Children that exist and are controlled by the composite, by the name they were composed under.
	Children map[string]*unstructured.Unstructured
}

// DecodeComposite reads the composite into a typed claim. Fields that the type does not know, Crossplane's own among
// them, are left out.
func DecodeComposite[T any](in Input) (*T, error) {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.Composite.Object, out); err != nil {
		return nil, fmt.Errorf("cannot read composite %s %q: %w", in.Composite.GetKind(), in.Composite.GetName(), err)
	}
	return out, nil
}

// DecodeChild reads an observed child into its type. It is nil when there is no such child.
func DecodeChild[T any](in Input, name string) (*T, error) {
	u, ok := in.Children[name]
	if !ok {
		return nil, nil //nolint:nilnil // Absent is an answer here, not an error.
	}
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("cannot read composed %s %q: %w", u.GetKind(), u.GetName(), err)
	}
	return out, nil
}
