package pool

import (
	"cmp"
	"slices"
	"time"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
)

// A Plan is what one look found missing by the settings of then, less what was made of it since.
type Plan struct {
	// Look that it is of. Zero: none.
	Look LookID
	// Generation of the settings that it is by.
	Generation int64
	// Wants that are left.
	Wants []Want
}

// A LookID tells looks of all sessions apart.
type LookID struct {
	Session string
	Number  int64
}

// plan what is missing of one look: runners for all waiting jobs and the minimum, less those that can take a job. When there
// are more of these than it takes, some may have waited for too long, by name.
func plan(s State, snap snapshot) (wants []Want, idle []string) {
	waiting := map[jobKey]bool{}
	for _, j := range s.Jobs {
		waiting[keyOf(queued(j))] = true
	}
	free, covered := offers(s, snap, waiting)
	var uncovered []Want
	for _, j := range s.Jobs {
		q := queued(j)
		if !covered[keyOf(q)] {
			uncovered = append(uncovered, Want{Job: &q})
		}
	}
	// Those that are free take the oldest.
	taken := min(len(free), len(uncovered))
	wants = uncovered[taken:]
	spares := s.Minimum - (len(free) - taken)
	idle = surplus(s, snap, free, -spares)
	if taken == 0 && spares == 0 {
		idle = aged(s, snap, free)
	}
	return append(slices.Clip(wants), make([]Want, max(0, spares))...), idle
}

// aged is the oldest of the spares, all of them idle, when it is past half of its life: it is renewed before its
// time without a job is over, which would count as a failure. The next look makes up for it.
func aged(s State, snap snapshot, free []*forgejov1.RunnerInstance) []string {
	if s.Gate != nil || len(free) == 0 || slices.ContainsFunc(free, func(i *forgejov1.RunnerInstance) bool { return !snap.idle(i) }) {
		return nil
	}
	oldest := slices.MinFunc(free, func(a, b *forgejov1.RunnerInstance) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	if half := lifetime(oldest) / 2; s.Now.Sub(oldest.CreationTimestamp.Time) < half {
		return nil
	}
	return []string{oldest.Name}
}

// surplus of so many runners are those of the free ones that wait for a job for longer than the pool keeps such, the longest
// first. None of them ever had one, and each was idle when the look began.
func surplus(s State, snap snapshot, free []*forgejov1.RunnerInstance, n int) []string {
	if s.Settings.IdleTimeoutSeconds == 0 || n <= 0 {
		return nil
	}
	free = slices.DeleteFunc(slices.Clone(free), func(i *forgejov1.RunnerInstance) bool {
		return !snap.idle(i) || s.Now.Sub(i.Status.AtProvider.OnlineTime.Time) < time.Duration(s.Settings.IdleTimeoutSeconds)*time.Second
	})
	slices.SortFunc(free, func(a, b *forgejov1.RunnerInstance) int {
		return cmp.Or(a.Status.AtProvider.OnlineTime.Compare(b.Status.AtProvider.OnlineTime.Time), cmp.Compare(a.Name, b.Name))
	})
	names := make([]string, 0, len(free))
	for _, i := range free[:min(n, len(free))] {
		names = append(names, i.Name)
	}
	return names
}

// lost are the runners that are not heard of any more and hold slots which wants need, so many of them at most. None has a job in
// hand.
func lost(s State, snap snapshot, wants int) []string {
	var names []string
	room := int(s.Settings.MaxRunners)
	for n := range s.Instances {
		i := &s.Instances[n]
		goes := i.Spec.ForProvider.Drain || i.DeletionTimestamp != nil
		if live(i, s.Now) && !goes {
			room--
		}
		if !judged(i) && !goes && !snap.busy(i) && snap.lost(i) {
			names = append(names, i.Name)
		}
	}
	return names[:min(max(0, wants-max(0, room)), len(names))]
}

// offers are the runners that can take a job: those made for one that waits, by it, and the others. One that takes no other job
// than its own, which does not wait any more, is no offer.
func offers(s State, snap snapshot, waiting map[jobKey]bool) (free []*forgejov1.RunnerInstance, covered map[jobKey]bool) {
	covered = map[jobKey]bool{}
	for n := range s.Instances {
		i := &s.Instances[n]
		if !snap.available(i) {
			continue
		}
		p := i.Spec.ForProvider
		switch {
		case p.Job != nil && waiting[keyOf(*p.Job)] && !covered[keyOf(*p.Job)]:
			covered[keyOf(*p.Job)] = true
		case p.Job != nil && p.Config.Assignment == steading.AssignTargeted:
		default:
			free = append(free, i)
		}
	}
	return free, covered
}

// take what there is room for off a plan, in the order that the settings say.
func (p Plan) take(s State, room int) (taken []Want, rest Plan) {
	wants := p.Wants
	if s.Settings.Fairness == steading.FairnessOwner {
		wants = fair(wants, runningBy(s))
	}
	n := min(max(0, room), len(wants))
	return wants[:n:n], Plan{Look: p.Look, Generation: p.Generation, Wants: wants[n:]}
}

// runningBy counts the runners that hold a slot by the owner of the job that they were made for.
func runningBy(s State) map[int64]int {
	by := map[int64]int{}
	for n := range s.Instances {
		i := &s.Instances[n]
		if j := i.Spec.ForProvider.Job; j != nil && live(i, s.Now) {
			by[j.OwnerID]++
		}
	}
	return by
}

// pinned are the jobs that runners were made for which may take them still. A job that waits while its runner is busy was
// given no runner: that one took another. So was one whose runner is not heard of any more.
func pinned(instances []forgejov1.RunnerInstance, snap snapshot) map[jobKey]bool {
	p := map[jobKey]bool{}
	for n := range instances {
		i := &instances[n]
		if j := i.Spec.ForProvider.Job; j != nil && !judged(i) && !snap.busy(i) && !snap.lost(i) {
			p[keyOf(*j)] = true
		}
	}
	return p
}

// snapshotOf a look.
func snapshotOf(s State) snapshot {
	snap := snapshot{of: s.Settings.Forgejo, runners: map[int64]api.Runner{}, gone: s.Gone, offline: s.Offline}
	if s.Look != nil {
		snap.began, snap.runners = s.Look.Began, s.Look.Runners
	}
	return snap
}
