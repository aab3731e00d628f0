//go:build long

package argocd

import (
	"context"
	"testing"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/test/harness"
)

// TestArgoCDSyncsThePlatform with its real controller and repository server, from repositories on this machine, onto a bare
// Crossplane. What comes after the first sync builds on it.
func TestArgoCDSyncsThePlatform(t *testing.T) {
	w := newWorld(t)
	for _, story := range []struct {
		name string
		tell func(*testing.T, *world)
	}{
		{"from nothing, in waves", fromNothing},
		{"and then changes nothing", changesNothing},
		{"a commit that changes a claim", changesClaim},
		{"a commit that breaks a claim", breaksClaim},
		{"a commit that does not build", breaksBuild},
		{"replace keeps the composite", replaceRefused},
		{"a commit that removes a claim", removesClaim},
		{"a commit that upgrades the platform", upgrades},
		{"a commit that removes a stage", removesStage},
		{"a commit that removes a tenant", removesTenant},
	} {
		if !t.Run(story.name, func(t *testing.T) { story.tell(t, w) }) {
			w.report(t)
			return
		}
	}
}

// report where things stand, for a failure.
func (w *world) report(t *testing.T) {
	t.Helper()
	all, err := w.applications(context.Background())
	if err != nil {
		t.Log(err)
	}
	for _, a := range all {
		t.Log(a)
	}
}

// fromNothing but Crossplane and Argo CD to a platform with two tenants and their environments, by one Application that is
// applied by hand. None is made before those of earlier waves beside it are in sync and healthy.
func fromNothing(t *testing.T, w *world) {
	root, err := local.ReadObjects(w.platform.dir + "/steading.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.plane.Apply(t.Context(), root...); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	stop := w.watch(t, func(all []application) {
		for _, a := range all {
			if seen[a.GetName()] {
				continue
			}
			seen[a.GetName()] = true
			t.Logf("%s is there, in wave %d of %s", a.GetName(), a.wave(), a.parent())
			for _, b := range all {
				if b.parent() == a.parent() && b.wave() < a.wave() && (!b.healthy() || !b.synced()) {
					t.Errorf("%s was made before %s was healthy: %s", a.GetName(), b.GetName(), b)
				}
			}
		}
	})
	w.host(t)
	w.waitAll(t, "")
	stop()
	for _, e := range [][2]string{{"acme", "shop-dev"}, {"acme", "shop-prod"}, {"globex", "web-dev"}, {"globex", "web-prod"}} {
		if got := w.environment(t, e[0], e[1]); !harness.Ready(got) || got.Status.DeployedVersion != "1.4.2" {
			t.Errorf("Argo CD finds it healthy, but: %s", harness.Describe(got))
		}
	}
}
