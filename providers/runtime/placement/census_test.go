package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

func releaseOf(env string, state v1alpha1.ReleaseState, cs ...xpv2.Condition) *v1alpha1.Release {
	r := &v1alpha1.Release{ObjectMeta: metaOf("acme-"+env, env)}
	r.Status.AtProvider.State = state
	r.SetConditions(cs...)
	return r
}

func leaving(o client.Object) client.Object {
	o.SetFinalizers([]string{finalizer})
	return o
}

// TestEnvironmentsAreCounted by phase, once each, and by none but the provider that leads.
func TestEnvironmentsAreCounted(t *testing.T) {
	granted := func(env string, edit ...func(*v1alpha1.Request)) *v1alpha1.Placement {
		p := placementOf(env, edit...)
		p.Status.AtProvider.Grant = &v1alpha1.Grant{Version: "1.4.2", Context: "platform"}
		return p
	}
	held := boundaryOf("held")
	held.SetConditions(xpv2.Condition{Type: steading.ConditionDeletionBlocked, Status: corev1.ConditionTrue})
	refused := placementOf("refused")
	refused.Status.AtProvider.Refusal = &v1alpha1.Refusal{Reason: "EnvironmentLimit"}
	w := newWorld(t,
		granted("agent", func(r *v1alpha1.Request) { r.Type = steading.TypeLocalAgent }), placementOf("planned", dryRun),
		refused, placementOf("new"),
		granted("young"), granted("deploying"), releaseOf("deploying", v1alpha1.ReleaseDeploying),
		granted("runs"), releaseOf("runs", v1alpha1.ReleaseDeployed, xpv2.Available()),
		granted("rolledback"), releaseOf("rolledback", v1alpha1.ReleaseRolledBack), granted("older"), releaseOf("older", v1alpha1.ReleaseDeployed),
		granted("failed"), releaseOf("failed", v1alpha1.ReleaseFailed),
		leaving(granted("goes")), leaving(granted("held")), held,
	)
	w.delete(placementOf("goes")).delete(placementOf("held"))

	c := &census{reader: w.kube}
	want := map[string]float64{"Registered": 2, "Pending": 2, "Provisioning": 2, "Running": 3, "Failed": 1, "Deleting": 1, "DeletionBlocked": 1}
	if have := phases(t, c); len(have) != 0 {
		t.Errorf("it does not lead, and counts %v", have)
	}
	c.leads.Store(true)
	if diff := cmp.Diff(want, phases(t, c)); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}

	w.delete(placementOf("failed"))
	want["Failed"] = 0
	if diff := cmp.Diff(want, phases(t, c)); diff != "" {
		t.Errorf("after one is gone: -want, +have:\n%s", diff)
	}
}

// phases as they are served.
func phases(t *testing.T, c *census) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			have[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return have
}
