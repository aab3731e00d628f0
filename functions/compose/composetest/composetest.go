// Package composetest makes what composers are tested with: composites and children as Crossplane hands them over.
package composetest

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
)

// Object as Crossplane hands it over.
func Object(t *testing.T, o any) *unstructured.Unstructured {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: m}
}

// Composite of a kind, with the spec and status of a claim, and bound to it in a namespace and by a name.
func Composite(t *testing.T, kind string, claim any, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	u := Object(t, claim)
	u.SetAPIVersion(steading.GroupVersion.String())
	u.SetKind(kind)
	u.SetName(name + "-x7k2p")
	u.SetUID("11111111-2222-3333-4444-555555555555")
	if err := unstructured.SetNestedMap(u.Object, map[string]any{"namespace": namespace, "name": name}, "spec", "claimRef"); err != nil {
		t.Fatal(err)
	}
	return u
}

// Observed is the input of a composite whose one child, of type T, is what the composer makes at first and edit then makes
// of it. Nothing is observed yet where edit is nil.
func Observed[T any](t *testing.T, composer compose.ComposerFunc, composite *unstructured.Unstructured, child string, edit func(*T)) compose.Input {
	t.Helper()
	in := compose.Input{Composite: composite, Children: map[string]*unstructured.Unstructured{}}
	if edit == nil {
		return in
	}
	first, err := composer(in)
	if err != nil {
		t.Fatal(err)
	}
	o, ok := any(first.Children[child].Object).(*T)
	if !ok {
		t.Fatalf("child %s is a %T", child, first.Children[child].Object)
	}
	edit(o)
	in.Children[child] = Object(t, o)
	return in
}
