//go:build long

package argocd

import (
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/cluster/local"
)

// An exclusion of kinds, in Argo CD's words.
type exclusion struct {
	APIGroups []string `json:"apiGroups"`
	Kinds     []string `json:"kinds"`
}

// TestExclusionsKeepArgoCDsOwn: ours take the place of those that Argo CD is installed with.
func TestExclusionsKeepArgoCDsOwn(t *testing.T) {
	tools, err := local.BuildTools(t.Context(), func(line string) { t.Log(line) }, local.ArgoCD)
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{}
	read(t, filepath.Join(tools.Asset(local.ArgoCD, "manifests/base"), "config", "argocd-cm.yaml"), cm)
	ours := exclusions(t, settings(t)["resource.exclusions"])
	theirs := exclusions(t, cm.Data["resource.exclusions"])
	if len(theirs) == 0 {
		t.Fatal("Argo CD excludes nothing of its own")
	}
	for _, e := range theirs {
		if !slices.Contains(ours, e) {
			t.Errorf("%s is not excluded any more", e)
		}
	}
}

// exclusions as group/kind.
func exclusions(t *testing.T, text string) []string {
	t.Helper()
	var list []exclusion
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range list {
		for _, group := range e.APIGroups {
			for _, kind := range e.Kinds {
				all = append(all, group+"/"+kind)
			}
		}
	}
	return all
}
