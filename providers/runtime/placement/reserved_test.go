package placement

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

func storage(amount string) *steading.Resources { return sizeOf("4", "16Gi", amount) }

// reserves more than it was granted.
func (a Applicant) reserves(r *steading.Resources) Applicant {
	a.Held.Reserved = r
	return a
}

// TestWhatIsMadeSmallerIsNotFreeAtOnce: a quota that is lowered takes nothing away from what is in use.
func TestWhatIsMadeSmallerIsNotFreeAtOnce(t *testing.T) {
	budget := func(s *State) { s.Quota.Total = sizeOf("160", "1Ti", "72Gi") }
	b := asks("b", sized(storage("68Gi"))).at(time.Second)
	const refusal = "storage of tenant acme would be 140Gi (68Gi for this environment and 72Gi for 1 other, counting 68Gi that is in use still where a size was lowered), the budget is 72Gi, 68Gi too much"

	cases := map[string]struct {
		reason   string
		a        Applicant
		reserved *steading.Resources // by a
		refusal  string              // of b
	}{
		"Now":       {"In the pass in which it is granted, it counts as before.", asks("a", sized(storage("72Gi"))).holds("platform").now(sized(storage("4Gi"))), storage("72Gi"), refusal},
		"Later":     {"And in those after it.", asks("a", sized(storage("4Gi"))).holds("platform").reserves(storage("72Gi")), storage("72Gi"), refusal},
		"Free":      {"Until it is known to be free.", asks("a", sized(storage("4Gi"))).holds("platform"), nil, ""},
		"Larger":    {"What is reserved it may have back.", asks("a", sized(storage("4Gi"))).holds("platform").reserves(storage("72Gi")).now(sized(storage("60Gi"))), storage("72Gi"), "counting 12Gi that"},
		"AsBefore":  {"All of it, too.", asks("a", sized(storage("4Gi"))).holds("platform").reserves(storage("72Gi")).now(sized(storage("72Gi"))), nil, "68Gi for this environment and 72Gi for 1 other),"},
		"Undecided": {"It counts while a registry is asked.", asks("a", sized(storage("4Gi"))).holds("platform").reserves(storage("72Gi")).now(components(componentAsked("db"))).finds(Candidate{Request: componentAsked("db")}), storage("72Gi"), "and 72Gi for 1 other"},
		"Leaving":   {"And while it is being deleted.", asks("a", sized(storage("4Gi"))).holds("platform").reserves(storage("72Gi")).leaving(), storage("72Gi"), "and 72Gi for 1 other"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ds := Decide(tenant(budget, with(tc.a, b)))
			if have := ds[0].Held.Reserved; (have == nil) != (tc.reserved == nil) || have != nil && !have.Equal(*tc.reserved) {
				t.Errorf("%s a reserves %v, want %v", tc.reason, have, tc.reserved)
			}
			have := ""
			if r := ds[1].Refusal; r != nil {
				have = r.Reason + ": " + r.Message
			}
			if (tc.refusal == "") != (have == "") || !strings.Contains(have, tc.refusal) {
				t.Errorf("%s b: %q, want %q", tc.reason, have, tc.refusal)
			}
		})
	}
}

// capped is the boundary of environment a whose quota its cluster counted with these caps.
func capped(caps *steading.Resources, inUse *steading.Resources) *v1alpha1.Boundary {
	b := boundaryOf("a")
	b.Spec.ForProvider.Identity = placementOf("a").Spec.ForProvider.Identity
	b.Spec.ForProvider.Caps = *caps
	b.Status.AtProvider.Quota = &v1alpha1.CountedQuota{Generation: b.Generation, InUse: inUse}
	return b
}

func (w *world) become(b *v1alpha1.Boundary) {
	w.t.Helper()
	old := &v1alpha1.Boundary{}
	if w.get(old, b.Name) {
		b.ResourceVersion = old.ResourceVersion
		if err := w.kube.Update(context.Background(), b); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	w.create(b)
}

func (w *world) refused(env string) bool {
	w.t.Helper()
	w.reconcile()
	return w.placement(env).Status.AtProvider.Refusal != nil
}

// TestWhatWasReservedIsReleasedByWhatItsClusterCounts goes through the life of a size that is lowered.
func TestWhatWasReservedIsReleasedByWhatItsClusterCounts(t *testing.T) {
	w := newWorld(t, homeOf(func(s *steading.TenantSpec) {
		s.Quota.Total, s.Quota.PerEnvironment = sizeOf("160", "1Ti", "72Gi"), sizeOf("16", "36Gi", "72Gi")
	}), placementOf("a", sized(storage("72Gi"))), capped(storage("72Gi"), nil))
	w.reconcile()
	w.ask("a", sized(storage("4Gi")))
	w.reconcile()
	w.create(placementOf("b", sized(storage("68Gi"))))

	old := capped(storage("4Gi"), nil)
	old.Generation++
	cases := []struct {
		reason string
		a      *v1alpha1.Boundary
		refuse bool
		used   string
	}{
		{"Its boundary has the caps from before.", capped(storage("72Gi"), nil), true, "72Gi"},
		{"Its boundary has the new caps, and the quota the old.", old, true, "72Gi"},
		{"The quota has the new caps, and more is in use.", capped(storage("4Gi"), sizeOf("0", "0", "60Gi")), true, "60Gi"},
		{"Less of it is in use.", capped(storage("4Gi"), sizeOf("0", "0", "5Gi")), true, "5Gi"},
		{"It all fits.", capped(storage("4Gi"), nil), false, "72Gi"},
	}
	for _, c := range cases {
		w.become(c.a)
		if have := w.refused("b"); have != c.refuse {
			t.Errorf("%s b is refused: %t, ledger %+v", c.reason, have, w.ledger().Entries)
		}
		w.clock.Step(reportEvery)
		w.reconcile()
		if u := w.home().Status.AtProvider.Usage.Storage.Projected; u.String() != c.used {
			t.Errorf("%s %s is in use, want %s", c.reason, u.String(), c.used)
		}
	}
}

// TestWhatChangesBackAtOnceIsReleased: the boundary never had the larger caps, so that nothing of it changes.
func TestWhatChangesBackAtOnceIsReleased(t *testing.T) {
	w := newWorld(t, homeOf(), placementOf("a", sized(storage("4Gi"))), capped(storage("4Gi"), nil))
	w.reconcile()
	w.ask("a", sized(storage("72Gi")))
	w.reconcile()
	w.clock.Step(reportEvery)
	w.ask("a", sized(storage("4Gi")))
	if r := w.reconcile(); w.ledger().Entries[0].Reserved == nil || r.RequeueAfter != soon {
		t.Errorf("looks again after %s, ledger %+v", r.RequeueAfter, w.ledger().Entries)
	}
	if r := w.reconcile(); w.ledger().Entries[0].Reserved != nil || r.RequeueAfter == soon {
		t.Errorf("looks again after %s, ledger %+v", r.RequeueAfter, w.ledger().Entries)
	}
}

// TestReleaseIsNotReadFromTheCache, which may have the boundary as it was when the caps had been as small before.
func TestReleaseIsNotReadFromTheCache(t *testing.T) {
	w := newWorld(t, homeOf(func(s *steading.TenantSpec) { s.Quota.Total = sizeOf("160", "1Ti", "72Gi") }), placementOf("a", sized(storage("72Gi"))))
	w.reconcile()
	w.ask("a", sized(storage("4Gi")))
	w.create(placementOf("b", sized(storage("68Gi"))))
	cached := newWorld(t, capped(storage("4Gi"), nil))
	w.r.client = splitReader{Client: w.kube, boundaries: cached.kube}
	w.become(capped(storage("72Gi"), nil))
	w.reconcile()
	if !w.refused("b") {
		t.Errorf("ledger %+v", w.ledger().Entries)
	}
}

// splitReader lists boundaries elsewhere.
type splitReader struct {
	client.Client
	boundaries client.Client
}

func (s splitReader) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	if _, ok := l.(*v1alpha1.BoundaryList); ok {
		return s.boundaries.List(ctx, l, opts...)
	}
	return s.Client.List(ctx, l, opts...)
}

func TestACountedQuotaWakesItsTenant(t *testing.T) {
	before, after := capped(storage("4Gi"), sizeOf("0", "0", "60Gi")), capped(storage("4Gi"), nil)
	if !quotaCounted().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("what is in use fits, and nobody is told")
	}
	if quotaCounted().Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after.DeepCopy()}) {
		t.Error("nothing changed")
	}
}
