package pool

import (
	"slices"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/forgejo/server"
)

// State is all that a decision depends on.
type State struct {
	Now      time.Time
	Settings steading.RunnerPoolSpec
	// Generation of the settings.
	Generation int64
	// Minimum that counts now, by the schedule.
	Minimum int
	// Gate keeps runners from being made. Nil: nothing does.
	Gate *Gate
	// Config that runners are made with. Nil: it is not known, and no runner is drained for it.
	Config *forgejov1.RunnerConfig
	// Session of the look, by its name.
	Session string
	// Look at the server. Nil: there is none that is true still.
	Look *server.Look
	// Gone are the registrations that the look did not list, and that are not there.
	Gone map[int64]bool
	// Offline are the registrations that look after look lists as offline, and when the first of these looks began.
	Offline map[int64]time.Time
	// Jobs that wait and that this pool claims, oldest first.
	Jobs []api.Job
	// Instances of this pool.
	Instances []forgejov1.RunnerInstance
	// Plan that was left by the last decision.
	Plan Plan
}

// A Gate is why no runners are made.
type Gate struct {
	// Reason of the condition RunnersMade.
	Reason xpv2.ConditionReason
	// Message in a sentence.
	Message string
}

// A Decision is what to do.
type Decision struct {
	// Spawn these runners.
	Spawn []Want
	// Drain these instances, by name.
	Drain []string
	// Delete these instances, which are history beyond the limits or cannot be judged any more, by name.
	Delete []string
	// Plan that is left.
	Plan Plan
	// Again is whether another look is needed: the settings changed, and what was left of this one was by the former.
	Again bool
	// Live, Available and Active runners, before anything is done.
	Live, Available, Active int
	// Waiting are the jobs that wait, less those that runners took since the look.
	Waiting int
	// Unserved are the jobs that have no runner yet and get none now.
	Unserved int
}

// Decide what to do about a pool.
func Decide(s State) Decision {
	snap := snapshotOf(s)
	d := Decision{Plan: s.Plan, Drain: drained(s), Delete: append(beyond(s), forsaken(s)...)}
	d.count(s, snap)
	d.Waiting = max(0, len(s.Jobs)-takenSince(s, snap))
	if s.Look == nil {
		return d
	}
	switch id := (LookID{Session: s.Session, Number: s.Look.Number}); {
	case d.Plan.Look != id:
		d.plan(s, snap, id)
	case d.Plan.Generation != s.Generation:
		// To plan by the same look twice might make two runners for a job.
		d.Plan, d.Again = Plan{Look: id, Generation: s.Generation}, true
	}
	if s.Gate == nil {
		d.Spawn, d.Plan = d.Plan.take(s, int(s.Settings.MaxRunners)-d.Live)
	}
	for _, w := range d.Plan.Wants {
		if w.Job != nil {
			d.Unserved++
		}
	}
	return d
}

// plan by a look that was not planned by.
func (d *Decision) plan(s State, snap snapshot, id LookID) {
	wants, idle := plan(s, snap)
	d.Plan = Plan{Look: id, Generation: s.Generation, Wants: wants}
	if s.Gate == nil {
		idle = append(idle, lost(s, snap, len(wants))...)
	}
	for _, name := range idle {
		if !slices.Contains(d.Drain, name) {
			d.Drain = append(d.Drain, name)
		}
	}
}

// takenSince counts the jobs which the look saw waiting and that runners of the pool took since.
func takenSince(s State, snap snapshot) int {
	n := 0
	for k := range s.Instances {
		i := &s.Instances[k]
		through := judged(i) && i.Status.AtProvider.Reason == forgejov1.RunnerConsumed
		since := i.Status.AtProvider.ActiveTime != nil && !snap.before(i.Status.AtProvider.ActiveTime.Time)
		if (through || since) && snap.available(i) {
			n++
		}
	}
	return n
}

// count the runners as they are now.
func (d *Decision) count(s State, snap snapshot) {
	for n := range s.Instances {
		i := &s.Instances[n]
		if live(i, s.Now) {
			d.Live++
		}
		switch {
		case judged(i):
		case snap.busy(i):
			d.Active++
		case snap.available(i):
			d.Available++
		}
	}
}
