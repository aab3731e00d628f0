// Package runnerpool composes an XRunnerPool: a Runner, which watches the queue of a Forgejo server and makes its runners.
package runnerpool

import (
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
)

// runner is the name of the only child.
const runner = "runner"

// Compose makes a pool's Runner.
func Compose(in compose.Input) (compose.Output, error) {
	m, err := compose.MachineryOf(in.Composite)
	if err != nil {
		return compose.Output{}, err
	}
	tenant, ok := names.TenantOf(m.Namespace)
	if !ok {
		return compose.Output{}, fmt.Errorf("runner pool %q is in namespace %q: runner pools live in a tenant's namespace, tenant-<tenant>", m.Name, m.Namespace)
	}
	xr, err := compose.DecodeComposite[steading.RunnerPool](in)
	if err != nil {
		return compose.Output{}, err
	}
	observed, err := compose.DecodeChild[forgejov1.Runner](in, runner)
	if err != nil {
		return compose.Output{}, err
	}

	desired := desiredRunner(m, tenant, xr.Spec)
	ready := false
	if observed != nil {
		if ready, err = compose.Satisfied(in, runner, observed, desired); err != nil {
			return compose.Output{}, err
		}
	}
	out := compose.Output{Ready: ready, Conditions: conditions(observed)}
	out.Add(runner, compose.Child{Object: desired, Ready: ready})
	status := statusOf(xr.Spec, observed, out.Conditions)
	out.Status = &status
	if e := transition(xr.Status, status); e != nil {
		out.Events = append(out.Events, *e)
	}
	return out, nil
}

// desiredRunner is the Runner as the claim wants it.
func desiredRunner(m compose.Machinery, tenant string, spec steading.RunnerPoolSpec) *forgejov1.Runner {
	id := runtimev1.Identity{Tenant: tenant, UID: m.UID}
	return &forgejov1.Runner{
		TypeMeta:   metav1.TypeMeta{APIVersion: forgejov1.GroupVersion.String(), Kind: forgejov1.RunnerKind},
		ObjectMeta: compose.ObjectMeta(names.Runner(tenant, m.Name), id),
		Spec: forgejov1.RunnerSpec{ForProvider: forgejov1.RunnerParameters{
			Identity: id,
			Claim:    runtimev1.ClaimReference{Namespace: m.Namespace, Name: m.Name},
			Settings: spec,
		}},
	}
}

// conditions are the Runner's own of the queue and of the runners.
func conditions(r *forgejov1.Runner) []xpv2.Condition {
	return []xpv2.Condition{
		condition(r, steading.ConditionQueueWatched, "the queue was not looked at yet"),
		condition(r, steading.ConditionRunnersMade, "no runners were decided on yet"),
	}
}

func condition(r *forgejov1.Runner, t xpv2.ConditionType, before string) xpv2.Condition {
	if r == nil {
		return compose.False(t, steading.ReasonPendingDecision, before)
	}
	switch c := r.GetCondition(t); c.Status {
	case "True":
		return compose.True(t, c.Reason, c.Message)
	case "False":
		return compose.False(t, c.Reason, c.Message)
	default:
		if synced := r.GetCondition(xpv2.TypeSynced); synced.Status == "False" {
			return compose.False(t, synced.Reason, synced.Message)
		}
		return compose.False(t, steading.ReasonPendingDecision, before)
	}
}

// statusOf is the pool's status, from what is seen of its Runner.
func statusOf(spec steading.RunnerPoolSpec, r *forgejov1.Runner, cs []xpv2.Condition) steading.RunnerPoolStatus {
	s := steading.RunnerPoolStatus{Phase: phaseOf(spec, cs[0], cs[1])}
	if r != nil {
		s.RunnerPoolObservation = r.Status.AtProvider
	}
	for _, c := range cs {
		if c.Status == "False" && c.Message != "" {
			s.Message = c.Message
			return s
		}
	}
	if len(s.Reasons) > 0 {
		s.Message = s.Reasons[0]
	}
	return s
}

// phaseOf sums the conditions up.
func phaseOf(spec steading.RunnerPoolSpec, watched, made xpv2.Condition) steading.RunnerPoolPhase {
	switch {
	case spec.Suspend && made.Reason == steading.ReasonSuspended:
		return steading.RunnerPoolSuspended
	case watched.Status == "False" && (watched.Reason == steading.ReasonServerUnreachable || watched.Reason == steading.ReasonWrongAnswer):
		return steading.RunnerPoolUnreachable
	case watched.Status == "False":
		return steading.RunnerPoolPending
	case made.Status == "False" && made.Reason == steading.ReasonBackingOff:
		return steading.RunnerPoolBackingOff
	case made.Status == "False":
		return steading.RunnerPoolPending
	default:
		return steading.RunnerPoolReady
	}
}

// transition is the event for a change of phase.
func transition(before, now steading.RunnerPoolStatus) *compose.Event {
	if before.Phase == now.Phase {
		return nil
	}
	switch now.Phase {
	case steading.RunnerPoolReady:
		return &compose.Event{Reason: "Ready", Message: "the queue is watched, and runners are made for its jobs"}
	case steading.RunnerPoolSuspended:
		return &compose.Event{Reason: "Suspended", Message: "no more runners are made; those with a job in hand finish it"}
	case steading.RunnerPoolBackingOff:
		return &compose.Event{Warning: true, Reason: "BackingOff", Message: now.Message}
	case steading.RunnerPoolUnreachable:
		return &compose.Event{Warning: true, Reason: "Unreachable", Message: now.Message}
	default:
		return nil
	}
}
