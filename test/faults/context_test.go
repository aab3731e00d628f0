package faults

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/fakes/edgeoperators"
	"github.com/steading-dev/steading/test/faults/proxy"
	"github.com/steading-dev/steading/test/harness"
)

const (
	zone       = "services.example.com"
	address    = "203.0.113.7"
	credential = "edge-admin"
)

// onAContext is the story of an environment on a cluster of the tenant's own, where it is exposed.
var onAContext = story{
	tenant:     "faultsfar",
	operations: []operation{register, create, expose, remove, deregister},
	targets:    []string{platform.Function, platform.Provider, crossplane, providersConnection, crossplanesConnection, edgesConnection},
	live:       liveOnAContext,
}

// The operators that expose the environments of the story.
var (
	dns   *edgeoperators.DNS
	certs *edgeoperators.CertManager
)

// TestKilledAtAnyRequestOnAContext lives the lives of the seeds on the edge.
func TestKilledAtAnyRequestOnAContext(t *testing.T) {
	p, err := proxy.Start(suite.Edge.Config().Host, suite.Edge.CA())
	if err != nil {
		t.Fatal(err)
	}
	fronts[edge] = p
	t.Cleanup(func() {
		delete(fronts, edge)
		_ = p.Close() // Nobody is on it any more.
	})
	dns, certs = suite.StartOperators(t)
	suite.IssueCertificates(t)
	suite.NewTenant(t, onAContext.tenant, steading.TenantSpec{})
	suite.Create(t, harness.TokenSecret(onAContext.tenant, credential, suite.EdgeToken(t, "faults-admin")))
	onAContext.run(t)
}

// edgeContext is a context that stands for the edge, behind the front before it.
func (l *life) edgeContext() *steading.Context {
	c := suite.EdgeContext(l.story.tenant, l.name, harness.BySecret(credential))
	c.Spec.Server, c.Spec.CABundle = fronts[edge].URL(), fronts[edge].CA()
	c.Spec.Zone, c.Spec.Ingress = zone, &steading.ContextIngress{Addresses: []string{address}, ClassName: "traefik"}
	return c
}

func liveOnAContext(t *testing.T, l *life) {
	t.Helper()
	c, e := l.edgeContext(), harness.Environment(l.story.tenant, l.name)
	e.Spec.ContextRef, e.Spec.Expose.Enabled = &steading.ContextReference{Name: l.name}, ptr.To(false)
	l.environment, l.cluster = e, suite.EdgeClient(t)

	l.during(t, register, func() { suite.Create(t, c) }, func() { suite.WaitContext(t, c, "running", harness.ContextRunning) })
	context := suite.ContextUID(t, l.story.tenant, l.name)

	l.during(t, create, func() { suite.Create(t, e) }, func() { l.wantRunning(t, first) })
	l.uid = suite.CompositeUID(t, l.story.tenant, l.name)
	suite.WantUsage(t, l.uid, runtimev1.TransitionProvisioned)

	l.during(t, expose, func() { l.change(t, func(e *steading.Environment) { e.Spec.Expose.Enabled = ptr.To(true) }) }, func() { l.wantExposed(t) })

	l.during(t, remove, func() { suite.Delete(t, e) }, func() { suite.WantGone(t, e) })
	l.wantNotExposed(t)
	l.wantNothing(t)
	suite.WantUsage(t, l.uid, runtimev1.TransitionProvisioned, runtimev1.TransitionDeleted)

	l.during(t, deregister, func() { suite.Delete(t, c) }, func() { suite.WantGone(t, c) })
	l.wantNothingOf(t, context)
	suite.WantNotGuardedFor(t, names.Context(l.story.tenant, l.name))
}
