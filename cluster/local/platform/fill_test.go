package platform

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestReplaced(t *testing.T) {
	o := map[string]any{"a": "https://${EDGE_ADDRESS}", "b": []any{"x", map[string]any{"c": "${EDGE_CA}"}}, "n": int64(1)}
	replaced(o, func(s string) string {
		return placeholder.ReplaceAllStringFunc(s, func(n string) string { return strings.ToLower(n[2 : len(n)-1]) })
	})
	if diff := cmp.Diff(map[string]any{"a": "https://edge_address", "b": []any{"x", map[string]any{"c": "edge_ca"}}, "n": int64(1)}, o); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestExamplesThatAskForAnEdgeNeedOne(t *testing.T) {
	plain := &unstructured.Unstructured{Object: map[string]any{"kind": "Environment", "metadata": map[string]any{"name": "web"}}}
	if err := (&Platform{}).fill(t.Context(), []*unstructured.Unstructured{plain}); err != nil {
		t.Errorf("it asks for nothing: %v", err)
	}
	asks := &unstructured.Unstructured{Object: map[string]any{"kind": "Context", "metadata": map[string]any{"name": "edge"}, "spec": map[string]any{"server": "https://${EDGE_ADDRESS}"}}}
	if err := (&Platform{}).fill(t.Context(), []*unstructured.Unstructured{plain, asks}); err == nil || !strings.Contains(err.Error(), "Context /edge") {
		t.Errorf("got %v", err)
	}
}
