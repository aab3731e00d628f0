package environment

import (
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
)

// conditions say how far the environment has come, stage by stage.
func (s *stages) conditions(out compose.Output) []xpv2.Condition {
	cs := []xpv2.Condition{s.admitted()}
	if !s.deploys() {
		return cs
	}
	cs = append(cs, s.placed(), s.bounded(out), s.deployed(out))
	cs = append(cs, s.componentsDeployed(out)...)
	return append(cs, s.exposed(), s.certified())
}

// decided reports whether admission's answer is about what the claim asks for now.
func (s *stages) decided() bool {
	return s.placement != nil && s.placement.Status.AtProvider.DecidedGeneration >= s.placement.GetGeneration()
}

// admitted says whether the tenant's quota has room for what is asked for now.
func (s *stages) admitted() xpv2.Condition {
	r, g := s.refusal(), s.grant()
	switch {
	case r != nil && !r.Placing:
		return compose.False(steading.ConditionAdmitted, xpv2.ConditionReason(r.Reason), r.Message)
	case s.env.Spec.State == steading.StatePlanned && g == nil:
		return compose.False(steading.ConditionAdmitted, steading.ReasonPlanned, "state is Planned: nothing is admitted, see status.plan")
	case r != nil:
		// Placed says why; there is nothing to admit without a place.
		return compose.False(steading.ConditionAdmitted, steading.ReasonWaitingForPlacement, "")
	case g == nil, !s.decided():
		return compose.False(steading.ConditionAdmitted, steading.ReasonPendingDecision, "admission has not decided yet")
	default:
		return compose.True(steading.ConditionAdmitted, steading.ReasonGranted, "")
	}
}

// placed says whether a context was chosen, and which.
func (s *stages) placed() xpv2.Condition {
	r, g := s.refusal(), s.grant()
	switch {
	case r != nil && r.Placing:
		return compose.False(steading.ConditionPlaced, xpv2.ConditionReason(r.Reason), r.Message)
	case s.hasPlace():
		return compose.True(steading.ConditionPlaced, xpv2.ConditionReason(g.Reason), "on context "+g.Context)
	case r != nil:
		return compose.False(steading.ConditionPlaced, steading.ReasonNotAdmitted, "")
	default:
		return compose.False(steading.ConditionPlaced, steading.ReasonPendingDecision, "")
	}
}

// bounded says whether the namespace stands.
func (s *stages) bounded(out compose.Output) xpv2.Condition {
	switch {
	case out.Children[boundary].Ready:
		return compose.True(steading.ConditionBoundaryReady, steading.ReasonStands, "")
	case out.Children[boundary].Object == nil:
		return compose.False(steading.ConditionBoundaryReady, steading.ReasonWaitingForPlacement, "")
	case s.boundary == nil:
		// What it will say first, so that nothing has to be said twice.
		return compose.False(steading.ConditionBoundaryReady, xpv2.ReasonCreating, "")
	default:
		return compose.NotReady(steading.ConditionBoundaryReady, s.boundary)
	}
}

// deployed says whether the runtime is rolled out as it is asked for, in the words of the pod, its controller or Helm.
func (s *stages) deployed(out compose.Output) xpv2.Condition {
	switch {
	case out.Children[release].Object == nil:
		return compose.False(steading.ConditionDeployed, steading.ReasonWaitingForBoundary, "")
	case out.Children[release].Ready && s.power() == steading.PowerStopped:
		return compose.True(steading.ConditionDeployed, steading.ReasonStopped, "scaled to zero")
	case out.Children[release].Ready:
		return compose.True(steading.ConditionDeployed, steading.ReasonDeployed, "")
	default:
		return s.deploying()
	}
}

// deploying is the condition of a Release that does not serve what is asked for. One that says nothing yet, as it does of what it
// expects to be done with in a moment, is being installed.
func (s *stages) deploying() xpv2.Condition {
	if s.release != nil {
		if c := notDeployed(steading.ConditionDeployed, s.release); c.Message != "" || c.Reason != steading.ReasonRollingOut {
			return c
		}
	}
	version := s.env.Spec.Version
	if g := s.grant(); g != nil && g.Version != "" {
		version = g.Version
	}
	return compose.False(steading.ConditionDeployed, steading.ReasonRollingOut, "installing version "+version)
}

// notDeployed is a condition that does not hold because a Release is not deployed as it is asked for.
func notDeployed(t xpv2.ConditionType, r *runtimev1.Release) xpv2.Condition {
	if o := r.Status.AtProvider; o.Reason != "" {
		return compose.False(t, xpv2.ConditionReason(o.Reason), o.Message)
	}
	c := compose.NotReady(t, r)
	if c.Reason == xpv2.ReasonCreating {
		c.Reason = steading.ReasonRollingOut
	}
	return c
}

// exposed says whether the services have their names and routes.
func (s *stages) exposed() xpv2.Condition {
	switch {
	case !s.exposes():
		return compose.False(steading.ConditionExposed, steading.ReasonNotExposed, "expose is not asked for")
	case s.edge == nil && !s.hasPlace():
		return compose.False(steading.ConditionExposed, steading.ReasonWaitingForPlacement, "")
	case s.edge == nil && s.placement.Status.AtProvider.Exposure == nil:
		return compose.False(steading.ConditionExposed, steading.ReasonNotExposed, "the context has no ingress and zone to expose services with")
	case s.edge == nil:
		return compose.False(steading.ConditionExposed, steading.ReasonExposing, "")
	default:
		return verdict(steading.ConditionExposed, s.edge, s.edge.Status.AtProvider.Exposed, steading.ReasonExposed)
	}
}

// certified says whether the services have their certificate.
func (s *stages) certified() xpv2.Condition {
	if s.edge == nil {
		return compose.False(steading.ConditionCertificateReady, steading.ReasonNotExposed, "")
	}
	return verdict(steading.ConditionCertificateReady, s.edge, s.edge.Status.AtProvider.Certificate, steading.ReasonIssued)
}

// verdict is an Edge's verdict as a condition. An error of the Edge's reconciler comes before it.
func verdict(t xpv2.ConditionType, e *runtimev1.Edge, v runtimev1.Verdict, good xpv2.ConditionReason) xpv2.Condition {
	switch {
	case v.OK:
		return compose.True(t, good, "")
	case v.Reason == "":
		return compose.NotReady(t, e)
	case onItsWay[v.Reason]:
		if synced := e.GetCondition(xpv2.TypeSynced); synced.Status == "False" && synced.Message != "" {
			return compose.False(t, xpv2.ConditionReason(v.Reason), synced.Message)
		}
	}
	return compose.False(t, xpv2.ConditionReason(v.Reason), v.Message)
}

// onItsWay are the reasons of verdicts that wait for the Edge's reconciler, whose error then says why it is not done.
var onItsWay = map[string]bool{string(steading.ReasonExposing): true, string(steading.ReasonIssuing): true}

// status sums up what is true of the environment.
func (s *stages) status(out compose.Output) steading.EnvironmentStatus {
	st := steading.EnvironmentStatus{Phase: s.phase(out), Message: firstProblem(out.Conditions)}
	st.Components = s.componentStatuses(out)
	if s.placement != nil {
		st.Plan = s.placement.Status.AtProvider.Plan
	}
	if g := s.grant(); g != nil && g.Context != "" {
		st.Context = &steading.PlacedContext{Name: g.Context, Reason: g.Reason}
		st.Caps = g.Caps
	}
	if _, ok := out.Children[boundary]; ok {
		st.Namespace = names.EnvironmentNamespace(s.id.Tenant, s.id.Environment)
	}
	if s.edge != nil && s.edge.Status.AtProvider.Exposed.OK && len(s.edge.Spec.ForProvider.Services) > 0 {
		st.Hostname = s.edge.Spec.ForProvider.Services[0].Host
	}
	if s.release != nil {
		st.Image = s.release.Status.AtProvider.Image
		if d := s.release.Status.AtProvider.Deployed; d != nil {
			st.DeployedVersion, st.Power = d.Version, d.Power
		}
	}
	return st
}

// phase is the environment in a word.
func (s *stages) phase(out compose.Output) steading.EnvironmentPhase {
	switch {
	case s.release == nil && s.env.Spec.State == steading.StatePlanned:
		return steading.EnvironmentRegistered
	case s.grant() == nil:
		return steading.EnvironmentPending
	case !s.deploys():
		return steading.EnvironmentRegistered
	case s.grant().Context == "":
		return steading.EnvironmentPending
	case out.Children[release].Ready:
		return steading.EnvironmentRunning
	case s.release == nil:
		return steading.EnvironmentProvisioning
	}
	switch s.release.Status.AtProvider.State {
	case runtimev1.ReleaseFailed:
		return steading.EnvironmentFailed
	case runtimev1.ReleaseRolledBack, runtimev1.ReleaseDeployed:
		return steading.EnvironmentRunning
	default:
		return steading.EnvironmentProvisioning
	}
}

// firstProblem is the message of the first condition that does not hold and says why, other than for not being asked for.
func firstProblem(cs []xpv2.Condition) string {
	for _, c := range cs {
		if c.Status == "False" && c.Message != "" && c.Reason != steading.ReasonNotExposed {
			return c.Message
		}
	}
	return ""
}

// events are what happened between the last run and this one, for the claim.
func (s *stages) events(now steading.EnvironmentStatus) []compose.Event {
	var es []compose.Event
	before := s.env.Status
	if now.Context != nil && (before.Context == nil || before.Context.Name != now.Context.Name) {
		es = append(es, compose.Event{Reason: string(now.Context.Reason), Message: fmt.Sprintf("placed on context %s with %s CPU, %s memory, %s storage", now.Context.Name, &now.Caps.CPU, &now.Caps.Memory, &now.Caps.Storage)})
	}
	if r := s.refusal(); r != nil && before.Message != r.Message {
		es = append(es, compose.Event{Warning: true, Reason: r.Reason, Message: r.Message})
	}
	if before.Phase != now.Phase || (before.Power != now.Power && before.Power != "") {
		if e, ok := s.phaseEvent(now); ok {
			es = append(es, e)
		}
	}
	return append(es, s.componentEvents(now.Components)...)
}

// phaseEvent is the event for having come into a phase.
func (s *stages) phaseEvent(now steading.EnvironmentStatus) (compose.Event, bool) {
	switch now.Phase {
	case steading.EnvironmentRegistered:
		return compose.Event{Reason: "Registered", Message: "recorded; nothing is deployed"}, true
	case steading.EnvironmentProvisioning:
		return compose.Event{Reason: "Provisioning", Message: "deploying version " + s.grant().Version}, true
	case steading.EnvironmentRunning:
		if now.Power == steading.PowerStopped {
			return compose.Event{Reason: "Stopped", Message: "scaled to zero; it still counts against the quota"}, true
		}
		return compose.Event{Reason: "Running", Message: "version " + now.DeployedVersion + " is running in namespace " + now.Namespace}, true
	case steading.EnvironmentFailed:
		return compose.Event{Warning: true, Reason: "Failed", Message: now.Message}, true
	default:
		return compose.Event{}, false
	}
}
