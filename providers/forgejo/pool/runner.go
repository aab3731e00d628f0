package pool

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
)

// stuck is how long a judged runner that is not released holds its slot: what a dead node does not report stopped must not
// hold it for ever.
const stuck = 5 * time.Minute

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

// listed is the registration of a runner as a look has it.
func listed(i *forgejov1.RunnerInstance, runners map[int64]api.Runner) (r api.Runner, registered, ok bool) {
	reg := i.Status.AtProvider.Registration
	if reg == nil {
		return api.Runner{}, false, false
	}
	r, ok = runners[reg.ID]
	return r, true, ok
}

// busy reports whether a runner has a job in hand, as far as is known. One that had one is not given another.
func busy(i *forgejov1.RunnerInstance, runners map[int64]api.Runner) bool {
	if judged(i) {
		return false
	}
	r, _, ok := listed(i, runners)
	o := i.Status.AtProvider
	return o.ActiveTime != nil || o.State == forgejov1.StateActive || ok && r.Status == api.RunnerActive
}

// A snapshot is what a look, and what was asked since about what it did not list, say of runners.
type snapshot struct {
	began   time.Time
	runners map[int64]api.Runner
	gone    map[int64]bool
}

// available reports whether a runner could take a job when the look began. What happened to it since does not count: the
// job that it took is among those that the look saw waiting.
func (s snapshot) available(i *forgejov1.RunnerInstance) bool {
	o := i.Status.AtProvider
	if i.Spec.ForProvider.Drain || i.DeletionTimestamp != nil && !judged(i) {
		return false
	}
	r, registered, ok := listed(i, s.runners)
	switch {
	case judged(i) && (o.CompletionTime == nil || s.before(o.CompletionTime.Time)):
		return false
	case !registered:
		return !judged(i)
	case o.ActiveTime != nil && s.before(o.ActiveTime.Time):
		return false
	case ok:
		return r.Status != api.RunnerActive
	case s.since(i):
		return true
	default:
		// It was left out, or it took its job and is gone.
		return !judged(i) && !s.gone[o.Registration.ID]
	}
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
		if _, registered, ok := listed(i, s.runners); registered && !ok && !judged(i) && !s.since(i) {
			ids = append(ids, i.Status.AtProvider.Registration.ID)
		}
	}
	return ids
}
