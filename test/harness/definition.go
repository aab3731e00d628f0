package harness

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// Definition of a kind of claims that takes anything, for a plane without Crossplane whose processes only read the claims'
// metadata and report on them.
func Definition(kind string) *unstructured.Unstructured {
	singular := strings.ToLower(kind)
	plural := singular + "s"
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + steading.GroupVersion.Group},
		"spec": map[string]any{
			"group": steading.GroupVersion.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": singular},
			"versions": []any{map[string]any{
				"name": steading.GroupVersion.Version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}
