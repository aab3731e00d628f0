package pool

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
)

// stuck is how long a judged runner that is not released holds its slot: what a dead node does not report stopped must not
// hold it for ever.
const stuck = 5 * time.Minute

// silent is how long a runner that was online may be offline and still be counted on.
const silent = 5 * time.Minute

// judged reports whether a runner has a verdict.
func judged(i *forgejov1.RunnerInstance) bool {
	p := i.Status.AtProvider.Phase
	return p == forgejov1.RunnerCompleted || p == forgejov1.RunnerFailed
}

// live reports whether a runner holds a slot.
func live(i *forgejov1.RunnerInstance, now time.Time) bool {
	o := i.Status.AtProvider
	if !judged(i) {
		return true
	}
	return !o.Released && o.CompletionTime != nil && now.Sub(o.CompletionTime.Time) < stuck
}

// lifetime is how long a runner may wait for a job, and then how long it may have that.
func lifetime(i *forgejov1.RunnerInstance) time.Duration {
	return time.Duration(i.Spec.ForProvider.Config.JobTimeoutSeconds) * time.Second
}

// inHand reports whether a runner had a job in hand when it was heard of last. One that had one is not given another.
func inHand(i *forgejov1.RunnerInstance) bool {
	o := i.Status.AtProvider
	return !judged(i) && (o.ActiveTime != nil || o.State == forgejov1.StateActive)
}

// A snapshot is what a look, and what was asked since about what it did not list, say of runners.
type snapshot struct {
	// of is the server and scope that was looked at.
	of      steading.ForgejoServer
	began   time.Time
	runners map[int64]api.Runner
	gone    map[int64]bool
	offline map[int64]time.Time
}

// listed is the registration of a runner as the look has it. Elsewhere the same number is another's.
func (s snapshot) listed(i *forgejov1.RunnerInstance) (r api.Runner, registered, ok bool) {
	reg := i.Status.AtProvider.Registration
	if reg == nil || elsewhere(i, s.of) {
		return api.Runner{}, reg != nil, false
	}
	r, ok = s.runners[reg.ID]
	return r, true, ok
}

// busy reports whether a runner has a job in hand, as far as is known.
func (s snapshot) busy(i *forgejov1.RunnerInstance) bool {
	r, _, ok := s.listed(i)
	return inHand(i) || !judged(i) && ok && r.Status == api.RunnerActive
}

// available reports whether a runner could take a job when the look began. What happened to it since does not count: the
// job that it took is among those that the look saw waiting. One that is elsewhere takes none of these.
func (s snapshot) available(i *forgejov1.RunnerInstance) bool {
	o := i.Status.AtProvider
	if i.Spec.ForProvider.Drain || i.DeletionTimestamp != nil && !judged(i) || elsewhere(i, s.of) {
		return false
	}
	r, registered, ok := s.listed(i)
	switch {
	case judged(i) && (o.CompletionTime == nil || s.before(o.CompletionTime.Time)):
		return false
	case !registered:
		return !judged(i)
	case o.ActiveTime != nil && s.before(o.ActiveTime.Time):
		return false
	case ok:
		return r.Status != api.RunnerActive && !s.lost(i)
	case s.since(i):
		return true
	default:
		// It was left out, or it took its job and is gone.
		return !judged(i) && !s.gone[o.Registration.ID]
	}
}

// idle reports whether a runner was there and waited for a job when the look began, and has none that is known of since.
func (s snapshot) idle(i *forgejov1.RunnerInstance) bool {
	r, _, ok := s.listed(i)
	return ok && r.Status == api.RunnerIdle && !judged(i) && !s.busy(i) && i.Status.AtProvider.OnlineTime != nil
}

// lost reports whether a runner that was online is not heard of any more, as of a machine that stands still, or of a node that
// cannot reach the server.
func (s snapshot) lost(i *forgejov1.RunnerInstance) bool {
	r, _, ok := s.listed(i)
	since, offline := s.offline[r.ID]
	return ok && offline && i.Status.AtProvider.OnlineTime != nil && s.began.Sub(since) >= silent
}

// since reports whether a runner was registered since the look, and so could take any job that the look saw.
func (s snapshot) since(i *forgejov1.RunnerInstance) bool {
	at := meta.GetExternalCreateSucceeded(i)
	return !at.IsZero() && !s.before(at)
}

// before reports whether t, which has whole seconds, is before the look.
func (s snapshot) before(t time.Time) bool { return t.Before(s.began.Truncate(time.Second)) }

// unlisted are the registrations of undecided runners that a look could have listed and does not. Only asking for each tells
// whether it is gone.
func (s snapshot) unlisted(instances []forgejov1.RunnerInstance) []int64 {
	var ids []int64
	for n := range instances {
		i := &instances[n]
		if _, registered, ok := s.listed(i); registered && !ok && !judged(i) && !s.since(i) && !elsewhere(i, s.of) {
			ids = append(ids, i.Status.AtProvider.Registration.ID)
		}
	}
	return ids
}
