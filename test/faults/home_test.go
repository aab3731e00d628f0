package faults

import (
	"testing"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/harness"
)

const (
	first  = "1.4.2"
	second = "1.4.3"
)

// atHome is the story of an environment on the platform's own cluster.
var atHome = story{
	tenant:     "faults",
	operations: []operation{create, upgrade, stop, start, remove},
	targets:    []string{platform.Function, platform.Provider, crossplane, providersConnection, crossplanesConnection},
	live:       liveAtHome,
}

// TestKilledAtAnyRequest lives the lives of the seeds on the platform's own cluster.
func TestKilledAtAnyRequest(t *testing.T) {
	suite.NewTenant(t, atHome.tenant, steading.TenantSpec{})
	atHome.run(t)
}

func liveAtHome(t *testing.T, l *life) {
	t.Helper()
	e := harness.Environment(l.story.tenant, l.name)
	l.environment, l.cluster = e, suite.Admin
	l.during(t, create, func() { suite.Create(t, e) }, func() { l.wantRunning(t, first) })
	l.uid = suite.CompositeUID(t, l.story.tenant, l.name)
	usage := []runtimev1.Transition{runtimev1.TransitionProvisioned}
	suite.WantUsage(t, l.uid, usage...)

	l.during(t, upgrade, func() { l.change(t, func(e *steading.Environment) { e.Spec.Version = second }) }, func() { l.wantRunning(t, second) })
	usage = append(usage, runtimev1.TransitionProvisioned)
	suite.WantUsage(t, l.uid, usage...)

	l.during(t, stop, func() { l.change(t, func(e *steading.Environment) { e.Spec.State = steading.StateStopped }) }, func() { l.wantStopped(t, second) })
	usage = append(usage, runtimev1.TransitionStopped)
	suite.WantUsage(t, l.uid, usage...)

	l.during(t, start, func() { l.change(t, func(e *steading.Environment) { e.Spec.State = steading.StateRunning }) }, func() { l.wantRunning(t, second) })
	usage = append(usage, runtimev1.TransitionStarted)
	suite.WantUsage(t, l.uid, usage...)

	l.during(t, remove, func() { suite.Delete(t, e) }, func() { suite.WantGone(t, e) })
	l.wantNothing(t)
	suite.WantUsage(t, l.uid, append(usage, runtimev1.TransitionDeleted)...)
}
