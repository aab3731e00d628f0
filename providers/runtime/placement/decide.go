package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// Decide on all that is pending, oldest claim first, each with what was granted before it in mind. It returns one
// decision an applicant, in the order of the applicants. Those that only ask for a plan are shown what would happen after
// all others.
func Decide(s State) []Decision {
	t := tallyOf(s)
	decisions := make([]Decision, len(s.Applicants))
	for i, a := range s.Applicants {
		decisions[i] = Decision{UID: a.UID, Held: a.Held}
	}
	for _, i := range t.order() {
		a := s.Applicants[i]
		if a.Paused || !a.pending() && !a.Request.DryRun {
			continue
		}
		if t.Unknown {
			decisions[i].Undecided = true
			continue
		}
		v := t.judge(a)
		switch {
		case v.undecided && a.Request.DryRun:
			decisions[i].Undecided = true
		case v.undecided:
			t.replace(a, a.undecided(v.grant))
			decisions[i].Undecided = true
		case a.Request.DryRun:
			decisions[i].Plan = v.plan()
		case v.refusal != nil:
			decisions[i].Refusal = v.refusal
		default:
			decisions[i].Held = a.granted(v.grant)
			t.replace(a, decisions[i].Held)
		}
	}
	return decisions
}

// tally is what is in use while the decisions are made.
type tally struct {
	State
	// environments that count against the limit.
	environments int
	// leaving environments, which do not.
	leaving int
	// places taken, by context.
	places map[string]int
	// sized environments and the sum of what counts of them, of which more is kept than was granted.
	sized       int
	total, kept steading.Resources
}

func tallyOf(s State) *tally {
	none := *steading.MustResources("0", "0", "0")
	t := &tally{State: s, places: map[string]int{}, total: none, kept: none}
	for _, a := range s.Applicants {
		if a.Leaving {
			t.leaving++
		}
		if a.Held == nil {
			continue
		}
		if !a.Leaving {
			t.environments++
		}
		t.take(a.Held)
	}
	return t
}

func (t *tally) take(h *Holding) {
	if at := h.Grant.Context; at != "" {
		t.places[at]++
	}
	if counts := h.counts(); counts != nil {
		t.total, t.kept = t.total.Add(*counts), t.kept.Add(h.kept())
		t.sized++
	}
}

func (t *tally) giveBack(h *Holding) {
	if at := h.Grant.Context; at != "" {
		t.places[at]--
	}
	if counts := h.counts(); counts != nil {
		t.total, t.kept = less(t.total, *counts), less(t.kept, h.kept())
		t.sized--
	}
}

// replace what the applicant held by something else.
func (t *tally) replace(a Applicant, h *Holding) {
	if a.Held == nil {
		t.environments++
	} else {
		t.giveBack(a.Held)
	}
	t.take(h)
}

// granted is what is held with a new grant. Of what counted before, nothing is free before it is known not to be in use: a
// quota that is lowered takes nothing away.
func (a Applicant) granted(g v1alpha1.Grant) *Holding {
	h := &Holding{Grant: g, Request: a.Request}
	if a.Held != nil {
		h.reserve(a.Held.counts())
	}
	return h
}

// undecided is what is kept for an applicant that is not decided on yet: what it would be granted, and at least what it
// holds, since it may be refused and keep that.
func (a Applicant) undecided(g v1alpha1.Grant) *Holding {
	if a.Held == nil {
		return &Holding{Grant: g}
	}
	if at := a.Held.Grant.Context; at != "" {
		g.Context = at
	}
	g.Caps = larger(a.Held.Grant.Caps, g.Caps)
	return a.granted(g)
}

// larger has more of each resource. Nil is nothing.
func larger(a, b *steading.Resources) *steading.Resources {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	most := a.Max(*b)
	return &most
}

// order is the order of decision: by the age of the claim, then by name; plans last.
func (t *tally) order() []int {
	order := make([]int, len(t.Applicants))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := t.Applicants[i], t.Applicants[j]
		return cmp.Or(
			after(a.Request.DryRun, b.Request.DryRun),
			a.Claimed.Compare(b.Claimed),
			cmp.Compare(a.Environment, b.Environment),
			cmp.Compare(a.UID, b.UID),
		)
	})
	return order
}

func after(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// verdict on one applicant: a grant, or a refusal, and the steps that were taken to it. An undecided one is a grant but for
// charts.
type verdict struct {
	grant     v1alpha1.Grant
	refusal   *v1alpha1.Refusal
	undecided bool
	steps     []string
}

// plan is the verdict as a person reads it before asking for it.
func (v *verdict) plan() []string {
	if v.refusal != nil {
		return append(v.steps, fmt.Sprintf("refuse (%s): %s", v.refusal.Reason, v.refusal.Message))
	}
	return v.steps
}

func (v *verdict) step(format string, args ...any) {
	v.steps = append(v.steps, fmt.Sprintf(format, args...))
}

// judge goes through the rules in the order in which they are documented: the place, the limit, the docker sidecar, the
// components, the floor, the cap, the total, the chart.
func (t *tally) judge(a Applicant) verdict {
	v := verdict{}
	if v.refusal = t.closed(); v.refusal != nil {
		return v
	}
	if record(a.Request) {
		return t.judgeRecord(a, v)
	}
	for _, rule := range []func(Applicant, *verdict) *v1alpha1.Refusal{t.place, t.limit, t.docker, t.components, t.resources, t.chart} {
		if v.refusal = rule(a, &v); v.refusal != nil {
			return v
		}
	}
	return v
}

// judgeRecord counts an environment that is not deployed.
func (t *tally) judgeRecord(a Applicant, v verdict) verdict {
	if v.refusal = t.limit(a, &v); v.refusal == nil {
		v.step("register %s; nothing is deployed", names.Environment(t.Tenant, a.Environment))
	}
	return v
}
