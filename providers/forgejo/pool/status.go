package pool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/server"
	"github.com/steading-dev/steading/providers/internal/kit"
)

const (
	// seldom is the shortest time between two writes of a pool's numbers.
	seldom = 2 * time.Second
	// mostRecent runners that ended are told of.
	mostRecent = 10
)

// writeStatus of the pass, which may have failed. It returns how long to wait if it is too early.
func (p *pass) writeStatus(ctx context.Context, failed error) (wait time.Duration, err error) {
	want := p.status(failed)
	last := &p.memory.status
	if equality.Semantic.DeepEqual(want, &p.runner.Status) && (last.status == nil || equality.Semantic.DeepEqual(want, last.status)) {
		return 0, nil
	}
	if since := p.now.Sub(last.at); since < seldom && !pressing(last.status, want) {
		return seldom - since, nil
	}
	if err := p.put(ctx, want); err != nil {
		return 0, err
	}
	*last = written{at: p.now, status: want}
	return 0, nil
}

// pressing changes are written at once: of conditions, which others wait for, and of what is counted and where runners
// are, which must not be lost.
func pressing(last, want *forgejov1.RunnerStatus) bool {
	return last == nil || last.Counted != want.Counted || !slices.Equal(last.Namespaces, want.Namespaces) || !last.Equal(&want.ConditionedStatus)
}

// put the status. This is its only writer, so that a conflict is with a change of something else.
func (p *pass) put(ctx context.Context, want *forgejov1.RunnerStatus) error {
	r := p.runner.DeepCopy()
	r.Status = *want.DeepCopy()
	err := p.client.Status().Update(ctx, r)
	if !kerrors.IsConflict(err) {
		return errors.Wrap(clean(err), "cannot write the status of the Runner")
	}
	if err := p.uncached.Get(ctx, p.key, r); err != nil {
		return errors.Wrap(clean(err), "cannot read the Runner")
	}
	r.Status = *want.DeepCopy()
	return errors.Wrap(clean(p.client.Status().Update(ctx, r)), "cannot write the status of the Runner")
}

// clean drops that the Runner is gone.
func clean(err error) error {
	if kerrors.IsNotFound(err) {
		return nil
	}
	return err
}

// status that is true now.
func (p *pass) status(failed error) *forgejov1.RunnerStatus {
	s := p.runner.Status.DeepCopy()
	p.observe(s)
	watched, made := p.watched(), p.madeCondition(failed, s.AtProvider.Recent)
	synced := xpv2.ReconcileSuccess()
	if err := errors.Join(failed, p.untidy); err != nil {
		synced = xpv2.ReconcileError(kit.Clean(err))
	}
	for _, c := range []xpv2.Condition{watched, made, synced, readyOf(watched, made)} {
		s.SetConditions(c.WithObservedGeneration(p.runner.Generation))
	}
	return s
}

// observe what was seen. Without a look that counts the queue stays as it was.
func (p *pass) observe(s *forgejov1.RunnerStatus) {
	o := &s.AtProvider
	if p.session != nil {
		o.LastPoll = pollOf(p.session.Poll(), p.trouble)
	}
	if p.state.Now.IsZero() {
		return // The pass did not get that far.
	}
	o.Available, o.Active, o.Live, o.Minimum = int32s(p.decision.Available), int32s(p.decision.Active), int32s(p.decision.Live), int32s(p.state.Minimum)
	o.ConsecutiveFailures, o.NextTryTime, s.Counted, s.Raised = p.tally.Failures, nil, p.tally.Verdicts, p.tally.Raised
	if p.tally.Next.After(p.now) {
		o.NextTryTime = &metav1.Time{Time: p.tally.Next}
	}
	o.Recent = slices.Clone(p.memory.recent)
	s.Namespaces = p.namespaces()
	if p.state.Look != nil {
		o.Waiting, o.Reasons = int32s(p.decision.Waiting), reasons(p.state, p.decision, p.unserved)
	}
	p.gauge()
}

func int32s(n int) int32 { return int32(n) } //nolint:gosec // A number of runners or jobs.

// pollOf a session in the words of the status.
func pollOf(p server.Poll, trouble error) *steading.RunnerPoolPoll {
	if p.Outcome == "" {
		return nil
	}
	out := &steading.RunnerPoolPoll{Outcome: p.Outcome, Since: metav1.NewTime(p.Since.Truncate(time.Second)), Version: p.Version}
	switch {
	case trouble != nil:
		out.Message = kit.CleanMessage(trouble.Error())
	case p.Err != nil:
		out.Message = kit.CleanMessage(p.Err.Error())
	}
	return out
}

// watched is the condition QueueWatched.
func (p *pass) watched() xpv2.Condition {
	switch {
	case p.trouble != nil:
		return condition(steading.ConditionQueueWatched, false, server.ReasonOf(p.trouble), p.trouble.Error())
	case p.session == nil:
		return condition(steading.ConditionQueueWatched, false, steading.ReasonPendingDecision, "the queue was not looked at yet")
	}
	switch poll := p.session.Poll(); poll.Outcome {
	case steading.PollSucceeded:
		return condition(steading.ConditionQueueWatched, true, steading.ReasonPolled, "")
	case steading.PollFailed:
		return condition(steading.ConditionQueueWatched, false, server.ReasonOf(poll.Err), poll.Err.Error())
	default:
		return condition(steading.ConditionQueueWatched, false, steading.ReasonPendingDecision, "the queue was not looked at yet")
	}
}

// madeCondition is the condition RunnersMade.
func (p *pass) madeCondition(failed error, ended []steading.EndedRunner) xpv2.Condition {
	switch {
	case p.state.Gate != nil && p.state.Gate.Reason == steading.ReasonBackingOff:
		return condition(steading.ConditionRunnersMade, false, p.state.Gate.Reason, p.state.Gate.Message+lastFailure(ended))
	case p.state.Gate != nil:
		return condition(steading.ConditionRunnersMade, false, p.state.Gate.Reason, p.state.Gate.Message)
	case failed != nil:
		return condition(steading.ConditionRunnersMade, false, steading.ReasonPendingDecision, failed.Error())
	case p.untidy != nil:
		return condition(steading.ConditionRunnersMade, true, steading.ReasonMaking, p.untidy.Error())
	default:
		return condition(steading.ConditionRunnersMade, true, steading.ReasonMaking, "")
	}
}

// lastFailure says what the last runner failed with that did.
func lastFailure(ended []steading.EndedRunner) string {
	e := lastFailed(ended)
	if e == nil {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("; the last one, %s, is %s: %s", e.Name, e.Reason, e.Message), ": ")
}

// lastFailed runner of those that ended, the newest first; nil if none did.
func lastFailed(ended []steading.EndedRunner) *steading.EndedRunner {
	for n := range ended {
		switch forgejov1.RunnerReason(ended[n].Reason) {
		case forgejov1.RunnerConsumed, forgejov1.Drained, forgejov1.JobGone:
		default:
			return &ended[n]
		}
	}
	return nil
}

// readyOf a pool: it is watched, and nothing about it is refused. One that backs off or is suspended is as it should be.
func readyOf(watched, made xpv2.Condition) xpv2.Condition {
	waits := made.Reason == steading.ReasonBackingOff || made.Reason == steading.ReasonSuspended
	for _, c := range []xpv2.Condition{watched, made} {
		if c.Status != corev1.ConditionTrue && (c.Type != made.Type || !waits) {
			return xpv2.Condition{
				Type: xpv2.TypeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(), Reason: c.Reason,
				Message: fmt.Sprintf("%s: %s", c.Type, c.Message),
			}
		}
	}
	return xpv2.Available()
}

func condition(t xpv2.ConditionType, is bool, reason xpv2.ConditionReason, message string) xpv2.Condition {
	c := xpv2.Condition{Type: t, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(), Reason: reason, Message: kit.CleanMessage(message)}
	if is {
		c.Status = corev1.ConditionTrue
	}
	return c
}
