package environment

import (
	"errors"
	"slices"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
)

// life plays the managed resources' side of an environment's life.
type life struct {
	t   *testing.T
	in  compose.Input
	out compose.Output
}

func begin(t *testing.T, spec steading.EnvironmentSpec) *life {
	t.Helper()
	l := &life{t: t, in: compose.Input{Composite: composite(t, spec, steading.EnvironmentStatus{}), Children: map[string]*unstructured.Unstructured{}}}
	return l.run()
}

// run composes and applies the result.
func (l *life) run() *life {
	l.t.Helper()
	out, err := Compose(l.in)
	if err != nil {
		l.t.Fatal(err)
	}
	l.out, l.in = out, observed(l.t, l.in, out)
	return l
}

func (l *life) status() steading.EnvironmentStatus {
	return *l.out.Status.(*steading.EnvironmentStatus) //nolint:forcetypeassert // A test.
}

func (l *life) want(phase steading.EnvironmentPhase, ready bool, children ...string) *life {
	l.t.Helper()
	var have []string
	for name := range l.out.Children {
		have = append(have, name)
	}
	slices.Sort(have)
	slices.Sort(children)
	if !slices.Equal(have, children) {
		l.t.Fatalf("children: have %v, want %v", have, children)
	}
	if s := l.status(); s.Phase != phase || l.out.Ready != ready {
		l.t.Fatalf("have phase %s (%s), ready %t; want %s, %t; conditions %+v", s.Phase, s.Message, l.out.Ready, phase, ready, l.out.Conditions)
	}
	return l
}

func (l *life) wantEvent(reason string) *life {
	l.t.Helper()
	if !slices.ContainsFunc(l.out.Events, func(e compose.Event) bool { return e.Reason == reason }) {
		l.t.Fatalf("no event %s in %+v", reason, l.out.Events)
	}
	return l
}

func (l *life) setSpec(change func(*steading.EnvironmentSpec)) *life {
	l.t.Helper()
	xr, err := compose.DecodeComposite[steading.Environment](l.in)
	if err != nil {
		l.t.Fatal(err)
	}
	change(&xr.Spec)
	l.in.Composite = composite(l.t, xr.Spec, xr.Status)
	return l
}

func running() steading.EnvironmentSpec {
	return steading.EnvironmentSpec{Type: steading.TypeRuntime, Version: "1.4.2", State: steading.StateRunning}
}

// provisioned is an environment that has come all the way.
func provisioned(t *testing.T) *life {
	t.Helper()
	l := begin(t, running()).want(steading.EnvironmentPending, false, placement)
	edit(t, l.in, placement, grant)
	l.run().want(steading.EnvironmentProvisioning, false, placement, boundary, release).wantEvent("PlatformFallback")
	edit(t, l.in, boundary, func(b *runtimev1.Boundary) { ready(b) })
	l.run().want(steading.EnvironmentProvisioning, false, placement, boundary, release)
	edit(t, l.in, release, deployed)
	return l.run().want(steading.EnvironmentRunning, true, placement, boundary, release).wantEvent("Running")
}

func TestEnvironmentComesUpStageByStage(t *testing.T) {
	l := provisioned(t)
	s := l.status()
	if s.DeployedVersion != "1.4.2" || s.Power != steading.PowerRunning || s.Namespace != "acme-dev" || s.Context.Name != "platform" || s.Message != "" {
		t.Fatalf("status %+v", s)
	}
	if l.run(); len(l.out.Events) != 0 {
		t.Fatalf("a second run says the same events again: %+v", l.out.Events)
	}
}

func TestRefusedSizeKeepsWhatRuns(t *testing.T) {
	l := provisioned(t)
	big := steading.MustResources("64", "20Gi", "40Gi")
	l.setSpec(func(s *steading.EnvironmentSpec) { s.Size = big }).run()
	l.want(steading.EnvironmentRunning, false, placement, boundary, release)
	edit(t, l.in, placement, func(p *runtimev1.Placement) {
		p.Status.AtProvider.Refusal = &runtimev1.Refusal{Reason: string(steading.ReasonOverEnvironmentCap), Message: "cpu 64 is over the cap of 16 by 48"}
	})
	l.run().want(steading.EnvironmentRunning, false, placement, boundary, release).wantEvent("OverEnvironmentCap")
	if c := condition(l.out, steading.ConditionAdmitted); c.Status != "False" || c.Message != "cpu 64 is over the cap of 16 by 48" {
		t.Fatalf("Admitted: %+v", c)
	}
	if b := l.out.Children[boundary].Object.(*runtimev1.Boundary); b.Spec.ForProvider.Caps.CPU.String() != "8" { //nolint:forcetypeassert // A test.
		t.Fatalf("the boundary was changed to %+v by a refused request", b.Spec.ForProvider.Caps)
	}
}

func TestNewVersionIsNotReadyUntilItIsDeployed(t *testing.T) {
	l := provisioned(t)
	l.setSpec(func(s *steading.EnvironmentSpec) { s.Version = "1.4.3" }).run()
	if l.out.Ready {
		t.Fatal("ready in the run that asks for another version")
	}
	edit(t, l.in, placement, grant)
	if l.run(); l.out.Ready {
		t.Fatal("ready although the release was just asked for another version")
	}
	edit(t, l.in, release, deployed)
	l.run().want(steading.EnvironmentRunning, true, placement, boundary, release)
	if v := l.status().DeployedVersion; v != "1.4.3" {
		t.Fatalf("deployed version %s", v)
	}
}

func TestRolledBackUpgradeServesAndSaysSo(t *testing.T) {
	l := provisioned(t)
	l.setSpec(func(s *steading.EnvironmentSpec) { s.Version = "1.4.3" }).run()
	edit(t, l.in, placement, grant)
	l.run()
	edit(t, l.in, release, func(r *runtimev1.Release) {
		r.Status.AtProvider.State = runtimev1.ReleaseRolledBack
		r.Status.AtProvider.Reason = string(steading.ReasonRolledBack)
		r.Status.AtProvider.Message = "version 1.4.3 failed: image not found; 1.4.2 serves"
	})
	l.run().want(steading.EnvironmentRunning, false, placement, boundary, release)
	if s := l.status(); s.DeployedVersion != "1.4.2" || s.Message != "version 1.4.3 failed: image not found; 1.4.2 serves" {
		t.Fatalf("status %+v", s)
	}
}

func TestStopIsNotATransitionOfPhase(t *testing.T) {
	l := provisioned(t)
	l.setSpec(func(s *steading.EnvironmentSpec) { s.State = steading.StateStopped }).run()
	if p := l.out.Children[release].Object.(*runtimev1.Release).Spec.ForProvider.Power; p != steading.PowerStopped { //nolint:forcetypeassert // A test.
		t.Fatalf("release is asked to be %s", p)
	}
	edit(t, l.in, placement, grant)
	edit(t, l.in, release, deployed)
	l.run().want(steading.EnvironmentRunning, true, placement, boundary, release).wantEvent("Stopped")
	if s := l.status(); s.Power != steading.PowerStopped {
		t.Fatalf("power %s", s.Power)
	}
}

func TestPlanningALiveEnvironmentChangesNothing(t *testing.T) {
	l := provisioned(t)
	l.setSpec(func(s *steading.EnvironmentSpec) { s.State = steading.StatePlanned }).run()
	if len(l.out.Children) != 3 {
		t.Fatalf("planning took children away: %v", l.out.Children)
	}
	if p := l.out.Children[placement].Object.(*runtimev1.Placement); !p.Spec.ForProvider.Request.DryRun { //nolint:forcetypeassert // A test.
		t.Fatal("planning asks for a grant")
	}
}

func TestPlanningAStoppedEnvironmentCountsItAsStopped(t *testing.T) {
	l := provisioned(t)
	l.setSpec(func(s *steading.EnvironmentSpec) { s.State = steading.StateStopped }).run()
	edit(t, l.in, release, func(r *runtimev1.Release) { r.Spec.ForProvider.Power = steading.PowerStopped })
	l.setSpec(func(s *steading.EnvironmentSpec) { s.State = steading.StatePlanned }).run()
	if p := l.out.Children[placement].Object.(*runtimev1.Placement); !p.Spec.ForProvider.Request.Stopped { //nolint:forcetypeassert // A test.
		t.Error("what only plans is taken to run again")
	}
}

// TestRefusedSaysNothingElse: what was not admitted waits neither for a decision nor for its names.
func TestRefusedSaysNothingElse(t *testing.T) {
	spec := running()
	spec.Expose = mcp()
	l := begin(t, spec)
	edit(t, l.in, placement, func(p *runtimev1.Placement) {
		p.Status.AtProvider.Refusal = &runtimev1.Refusal{Reason: string(steading.ReasonEnvironmentLimit), Message: "acme has 10 of at most 10"}
	})
	l.run().want(steading.EnvironmentPending, false, placement)
	have := map[xpv2.ConditionType]xpv2.ConditionReason{}
	for _, c := range l.out.Conditions {
		have[c.Type] = c.Reason
	}
	want := map[xpv2.ConditionType]xpv2.ConditionReason{
		steading.ConditionAdmitted: steading.ReasonEnvironmentLimit, steading.ConditionPlaced: steading.ReasonNotAdmitted,
		steading.ConditionBoundaryReady: steading.ReasonWaitingForPlacement, steading.ConditionDeployed: steading.ReasonWaitingForBoundary,
		steading.ConditionExposed: steading.ReasonWaitingForPlacement, steading.ConditionCertificateReady: steading.ReasonNotExposed,
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-want +have:\n%s", diff)
	}
}

func TestRecordsStayRegistered(t *testing.T) {
	for name, spec := range map[string]steading.EnvironmentSpec{
		"RemoteAgent": {Type: steading.TypeRemoteAgent, Version: "1.4.2"},
		"LocalAgent":  {Type: steading.TypeLocalAgent},
		"NoVersion":   {Type: steading.TypeRuntime},
	} {
		t.Run(name, func(t *testing.T) {
			l := begin(t, spec).want(steading.EnvironmentPending, false, placement)
			edit(t, l.in, placement, func(p *runtimev1.Placement) {
				p.Status.AtProvider.Grant = &runtimev1.Grant{}
				p.Status.AtProvider.DecidedGeneration = 1
				ready(p)
			})
			l.run().want(steading.EnvironmentRegistered, true, placement).wantEvent("Registered")
		})
	}
}

func TestPodsOwnReasonReachesTheClaim(t *testing.T) {
	l := begin(t, running())
	edit(t, l.in, placement, grant)
	l.run()
	edit(t, l.in, boundary, func(b *runtimev1.Boundary) { ready(b) })
	l.run()
	edit(t, l.in, release, func(r *runtimev1.Release) {
		r.Status.AtProvider = runtimev1.ReleaseObservation{State: runtimev1.ReleaseRollingOut, Reason: string(steading.ReasonImagePull), Message: `container devops: image "x:1" not found`}
	})
	l.run().want(steading.EnvironmentProvisioning, false, placement, boundary, release)
	if c := condition(l.out, steading.ConditionDeployed); c.Reason != steading.ReasonImagePull || l.status().Message != c.Message {
		t.Fatalf("Deployed %+v, message %q", c, l.status().Message)
	}
}

func TestCompositeWithoutAClaimIsRefused(t *testing.T) {
	in := compose.Input{Composite: composite(t, running(), steading.EnvironmentStatus{})}
	unstructured.RemoveNestedField(in.Composite.Object, "spec", "claimRef")
	if _, err := Compose(in); err == nil {
		t.Fatal("no error")
	}
}

func TestExposure(t *testing.T) {
	spec := running()
	spec.Expose = mcp()
	l := begin(t, spec)
	edit(t, l.in, placement, exposable)
	l.run()
	edit(t, l.in, boundary, func(b *runtimev1.Boundary) { ready(b) })
	l.run()
	edit(t, l.in, release, deployed)
	l.run().want(steading.EnvironmentRunning, true, placement, boundary, release, edge)
	e := l.out.Children[edge].Object.(*runtimev1.Edge).Spec.ForProvider //nolint:forcetypeassert // A test.
	if len(e.Services) != 1 || e.Services[0].Host != "mcp.acme-dev.services.example.com" || e.Services[0].Service != "acme-mcp" || e.CertificateSecret != "acme-dev-wildcard-tls" {
		t.Fatalf("edge %+v", e)
	}

	const failed = "update failed: cannot create Ingress acme-dev/acme-edge: it is invalid"
	edit(t, l.in, edge, func(e *runtimev1.Edge) {
		e.Status.AtProvider.Exposed = runtimev1.Verdict{Reason: string(steading.ReasonExposing), Message: "names and routes are being made"}
		e.SetConditions(xpv2.ReconcileError(errors.New(failed)))
	})
	l.run().want(steading.EnvironmentRunning, true, placement, boundary, release, edge)
	if c := condition(l.out, steading.ConditionExposed); c.Reason != steading.ReasonExposing || c.Message != failed || l.status().Message != failed {
		t.Fatalf("what the Edge cannot do is not told: Exposed %+v, status %+v", c, l.status())
	}

	edit(t, l.in, edge, func(e *runtimev1.Edge) {
		e.SetConditions(xpv2.ReconcileSuccess())
		e.Status.AtProvider.Exposed = runtimev1.Verdict{Reason: string(steading.ReasonHostTaken), Message: "mcp.acme-dev.services.example.com is routed by tenant-x/other"}
	})
	l.run().want(steading.EnvironmentRunning, true, placement, boundary, release, edge)
	if c := condition(l.out, steading.ConditionExposed); c.Reason != steading.ReasonHostTaken || l.status().Message != c.Message || l.status().Hostname != "" {
		t.Fatalf("Exposed %+v, status %+v", c, l.status())
	}

	edit(t, l.in, edge, func(e *runtimev1.Edge) {
		e.Status.AtProvider.Exposed, e.Status.AtProvider.Certificate = runtimev1.Verdict{OK: true}, runtimev1.Verdict{OK: true}
		ready(e)
	})
	l.run()
	if s := l.status(); s.Hostname != "mcp.acme-dev.services.example.com" || s.Message != "" {
		t.Fatalf("status %+v", s)
	}
	edit(t, l.in, placement, grant)
	edit(t, l.in, placement, func(p *runtimev1.Placement) { p.Status.AtProvider.Exposure = nil })
	l.run().want(steading.EnvironmentRunning, true, placement, boundary, release, edge)

	off := false
	l.setSpec(func(s *steading.EnvironmentSpec) { s.Expose.Enabled = &off }).run()
	l.want(steading.EnvironmentRunning, true, placement, boundary, release)
}

// What is refused a place is told that, and not that nobody has decided.
func TestRefusedPlaceIsTheMessage(t *testing.T) {
	l := begin(t, running())
	edit(t, l.in, placement, func(p *runtimev1.Placement) {
		p.Status.AtProvider.DecidedGeneration = p.Generation
		p.Status.AtProvider.Refusal = &runtimev1.Refusal{Reason: string(steading.ReasonAllContextsFull), Placing: true, Message: "all contexts are full"}
	})
	l.run().want(steading.EnvironmentPending, false, placement)
	if c := condition(l.out, steading.ConditionAdmitted); c.Reason != steading.ReasonWaitingForPlacement || l.status().Message != "all contexts are full" {
		t.Errorf("message %q, Admitted %+v", l.status().Message, c)
	}
}
