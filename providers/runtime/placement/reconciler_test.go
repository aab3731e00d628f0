package placement

import (
	"context"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/usage"
)

func quotaOf(n int32) func(*steading.TenantSpec) {
	return func(s *steading.TenantSpec) { s.Quota.MaxEnvironments = &n }
}

func TestGrantStandsInLedgerAndPlacement(t *testing.T) {
	w := newWorld(t, homeOf(func(s *steading.TenantSpec) {
		s.Owners = []steading.Subject{{Kind: "Group", Name: "acme-admins"}}
		s.Operations = true
	}), placementOf("dev"))
	w.reconcile()

	p := w.placement("dev")
	want := v1alpha1.Grant{Context: "platform", Reason: steading.PlacementPlatformFallback, Version: "1.4.2", Caps: small(), Chart: pin}
	if diff := cmp.Diff(&want, p.Status.AtProvider.Grant); diff != "" {
		t.Errorf("placement: -want, +have:\n%s", diff)
	}
	entries := []v1alpha1.LedgerEntry{{UID: "placement-dev", Placement: "acme-dev", Grant: want, Request: &p.Spec.ForProvider.Request}}
	if diff := cmp.Diff(entries, w.ledger().Entries); diff != "" {
		t.Errorf("ledger: -want, +have:\n%s", diff)
	}
	settings := &v1alpha1.TenantSettings{Owners: []steading.Subject{{Kind: "Group", Name: "acme-admins"}}, Operations: true}
	if diff := cmp.Diff(settings, p.Status.AtProvider.Tenant); diff != "" {
		t.Errorf("settings: -want, +have:\n%s", diff)
	}
	for _, c := range []xpv2.ConditionType{xpv2.TypeReady, xpv2.TypeSynced} {
		if c := p.GetCondition(c); c.Status != "True" || c.ObservedGeneration != 1 {
			t.Errorf("condition %+v", c)
		}
	}
	if len(p.Finalizers) != 1 || p.Status.AtProvider.DecidedGeneration != 1 {
		t.Errorf("finalizers %v, decided generation %d", p.Finalizers, p.Status.AtProvider.DecidedGeneration)
	}
}

func TestRefusalKeepsTheGrant(t *testing.T) {
	w := newWorld(t, homeOf(), placementOf("dev"))
	w.reconcile()
	w.ask("dev", version("2"), sized(sizeOf("17", "16Gi", "2Gi")))
	w.reconcile()
	p := w.placement("dev")
	if g := p.Status.AtProvider.Grant; g == nil || g.Version != "1.4.2" {
		t.Errorf("the grant is %+v", g)
	}
	c := p.GetCondition(xpv2.TypeReady)
	if c.Status != "False" || c.Reason != steading.ReasonOverEnvironmentCap || c.ObservedGeneration != 2 || c.Message != p.Status.AtProvider.Refusal.Message {
		t.Errorf("condition %+v", c)
	}

	w.ask("dev", version("1.4.2"), sized(small()))
	w.reconcile()
	if p := w.placement("dev"); p.Status.AtProvider.Refusal != nil || !kit.IsReady(p) {
		t.Errorf("asking for what it has is refused: %+v", p.Status)
	}
}

func TestAGrantThatWasNotToldIsTold(t *testing.T) {
	broken := true
	w := newWorld(t, homeOf(quotaOf(1)), placementOf("dev")).through(interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if broken {
				return errBroken
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	if _, err := w.r.Reconcile(context.Background(), acme); err == nil {
		t.Fatal("no error")
	}
	if len(w.ledger().Entries) != 1 || w.placement("dev").Status.AtProvider.Grant != nil {
		t.Fatal("the crash is not between the two")
	}
	broken = false
	w.create(placementOf("older"), claimOf("older", -time.Hour), claimOf("dev", 0))
	w.reconcile()
	if w.placement("dev").Status.AtProvider.Grant == nil {
		t.Error("what stands in the ledger was not told")
	}
	if r := w.placement("older").Status.AtProvider.Refusal; r == nil || r.Reason != string(steading.ReasonEnvironmentLimit) {
		t.Errorf("an older claim took what was granted: %+v", r)
	}
}

func TestALostLedgerIsWrittenAnew(t *testing.T) {
	w := newWorld(t, homeOf(quotaOf(1)), placementOf("dev", noSize))
	w.reconcile()
	before := w.ledger().Entries
	w.delete(w.ledger())
	w.create(placementOf("other"))
	w.reconcile()
	if diff := cmp.Diff(before, w.ledger().Entries); diff != "" {
		t.Errorf("-before, +now:\n%s", diff)
	}
}

func TestConflictIsDecidedAgain(t *testing.T) {
	cases := map[string]struct {
		reason    string
		conflicts int
		granted   bool
	}{
		"Few":  {"A writer that lost reads again and decides again.", tries - 1, true},
		"Many": {"One that keeps losing comes back later.", tries, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := 0
			w := newWorld(t, homeOf(), placementOf("dev")).through(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					if _, ok := o.(*v1alpha1.Ledger); ok && n < tc.conflicts {
						n++
						return kerrors.NewAlreadyExists(schema.GroupResource{}, o.GetName())
					}
					return c.Create(ctx, o, opts...)
				},
			})
			res := w.reconcile()
			if granted := w.placement("dev").Status.AtProvider.Grant != nil; granted != tc.granted {
				t.Errorf("%s: granted %t, result %+v", tc.reason, granted, res)
			}
			if !tc.granted && res.RequeueAfter != soon {
				t.Errorf("%s: result %+v", tc.reason, res)
			}
		})
	}
}

func TestAChangedPlacementIsDecidedOnAgain(t *testing.T) {
	changed := false
	w := newWorld(t, homeOf(), placementOf("dev"))
	w.through(interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if !changed {
				changed = true
				w.ask("dev", version("2"))
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	if res := w.reconcile(); res.RequeueAfter != soon {
		t.Errorf("result %+v", res)
	}
	w.reconcile()
	if p := w.placement("dev"); p.Status.AtProvider.Grant.Version != "2" || p.Status.AtProvider.DecidedGeneration != 2 {
		t.Errorf("status %+v", p.Status.AtProvider)
	}
}

func TestOneOfManyGetsTheLastPlace(t *testing.T) {
	w := newWorld(t, homeOf(quotaOf(1)))
	for i, env := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		w.create(placementOf(env), claimOf(env, -time.Duration(i)*time.Second))
	}
	w.reconcile()
	for _, env := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		if r := w.placement(env).Status.AtProvider.Refusal; r == nil || r.Reason != string(steading.ReasonEnvironmentLimit) {
			t.Errorf("%s: refusal %+v", env, r)
		}
	}
	if w.placement("j").Status.AtProvider.Grant == nil {
		t.Error("the oldest claim was refused")
	}
}

func TestTheTenantItself(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(*world)
		message string
	}{
		"Absent": {
			"Without a Home nothing is granted.",
			func(*world) {},
			"tenant acme does not exist: an operator applies the Tenant in steading-system",
		},
		"ForeignNamespace": {
			"Nor when its namespace is another's, as one that a tenant of the same name has left.",
			func(w *world) {
				h := homeOf()
				h.SetConditions(xpv2.Condition{Type: xpv2.TypeReady, Status: "False", Reason: steading.ReasonForeignNamespace})
				w.create(h)
			},
			"tenant acme has no namespace of its own: see the condition HomeReady of the Tenant",
		},
		"Leaving": {
			"Nor while it is being deleted.",
			func(w *world) {
				h := homeOf()
				h.Finalizers = []string{finalizer}
				w.create(h).delete(h)
			},
			"tenant acme is being deleted and takes nothing new",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, placementOf("dev"))
			tc.prepare(w)
			w.reconcile()
			want := &v1alpha1.Refusal{Reason: "TenantNotReady", Message: tc.message}
			if diff := cmp.Diff(want, w.placement("dev").Status.AtProvider.Refusal); diff != "" {
				t.Errorf("%s: -want, +have:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNothingIsDecidedBeforeTheNamespaceStands: what is claimed in it may be another tenant's of the same name.
func TestNothingIsDecidedBeforeTheNamespaceStands(t *testing.T) {
	h := homeOf()
	h.Status.AtProvider.Namespace = ""
	w := newWorld(t, h, placementOf("dev"))
	w.reconcile()
	if o := w.placement("dev").Status.AtProvider; o.Grant != nil || o.Refusal != nil {
		t.Fatalf("decided: %+v", o)
	}
	h = w.home()
	h.Status.AtProvider.Namespace = "tenant-acme"
	if err := w.kube.Status().Update(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if o := w.placement("dev").Status.AtProvider; o.Grant == nil {
		t.Errorf("not granted: %+v", o)
	}
}

func TestChartProblemsAreTold(t *testing.T) {
	w := newWorld(t, homeOf(), placementOf("dev"))
	w.charts.err = errBroken
	w.reconcile()
	if r := w.placement("dev").Status.AtProvider.Refusal; r == nil || r.Reason != "ChartNotResolved" || r.Message != "broken" {
		t.Errorf("refusal %+v", r)
	}
	w.delete(&v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig}})
	w.reconcile()
	want := "the operator has not applied the ClusterProviderConfig default of group runtime.steading.dev, which names the runtime's chart"
	if r := w.placement("dev").Status.AtProvider.Refusal; r == nil || r.Message != want {
		t.Errorf("refusal %+v", r)
	}
}

func TestTheFloorIsTheCharts(t *testing.T) {
	w := newWorld(t, homeOf(), placementOf("dev", sized(sizeOf("3", "16Gi", "2Gi"))))
	w.reconcile()
	want := "cpu 3 is below the 4 that the runtime needs, 1 short: raise spec.size.cpu"
	if r := w.placement("dev").Status.AtProvider.Refusal; r == nil || r.Message != want {
		t.Errorf("refusal %+v", r)
	}
}

func TestAnUndecidedPlacementIsToldNothing(t *testing.T) {
	w := newWorld(t, homeOf(), placementOf("dev"))
	w.charts.err = ErrAsking
	w.reconcile()
	if s := w.placement("dev").Status; len(w.ledger().Entries) != 0 || s.AtProvider.DecidedGeneration != 0 || len(s.Conditions) != 0 {
		t.Errorf("status %+v", s)
	}
	w.charts.err = nil
	w.reconcile()
	if !kit.IsReady(w.placement("dev")) {
		t.Error("it is not decided once the chart is known")
	}
}

func TestADryRunGrantsNothing(t *testing.T) {
	w := newWorld(t, homeOf(), placementOf("dev", dryRun))
	w.reconcile()
	p := w.placement("dev")
	if len(w.ledger().Entries) != 0 || p.Status.AtProvider.Grant != nil || len(p.Status.AtProvider.Plan) != 5 || !kit.IsReady(p) {
		t.Errorf("ledger %+v, status %+v", w.ledger().Entries, p.Status)
	}
	w.ask("dev", func(r *v1alpha1.Request) { r.DryRun = false })
	w.reconcile()
	if p := w.placement("dev"); p.Status.AtProvider.Grant == nil || p.Status.AtProvider.Plan != nil {
		t.Errorf("status %+v", p.Status.AtProvider)
	}
}

func TestAPlacementGoesLast(t *testing.T) {
	w := newWorld(t, homeOf(quotaOf(1)), placementOf("dev"), boundaryOf("dev"))
	w.reconcile()
	log := usage.Log{Client: w.kube, Reader: w.kube}
	provisioned := usage.Entry{
		Identity: w.placement("dev").Spec.ForProvider.Identity, Transition: v1alpha1.TransitionProvisioned, Revision: 1, Time: epoch,
		Version: "1.4.1", Context: "platform", Caps: small(), // The version that was granted since never served.
	}
	if err := log.Record(context.Background(), provisioned); err != nil {
		t.Fatal(err)
	}

	w.delete(placementOf("dev"))
	w.create(placementOf("next"))
	w.reconcile()
	p := w.placement("dev")
	if c := p.GetCondition(xpv2.TypeReady); c.Reason != xpv2.ReasonDeleting || c.Message != "waiting until Boundary acme-dev are gone" {
		t.Errorf("condition %+v", c)
	}
	if len(w.ledger().Entries) != 2 {
		t.Errorf("what is being deleted is not counted in the totals, or its slot is not free: %+v", w.ledger().Entries)
	}

	w.delete(boundaryOf("dev"))
	w.reconcile()
	if w.get(&v1alpha1.Placement{}, "acme-dev") {
		t.Error("the placement stays")
	}
	if es := w.ledger().Entries; len(es) != 1 || es[0].Placement != "acme-next" {
		t.Errorf("ledger %+v", es)
	}
	deleted := usage.Entry{Identity: provisioned.Identity, Transition: v1alpha1.TransitionDeleted}
	e := &v1alpha1.UsageEvent{}
	if !w.get(e, deleted.Name()) || e.Spec.Context != "platform" || e.Spec.Version != "1.4.1" || !e.Spec.Caps.Equal(*small()) {
		t.Errorf("usage event %+v", e.Spec)
	}
}

// TestAPausedPlacementIsLeftAlone: it is neither decided on nor written, deleted or not, and what it holds counts.
func TestAPausedPlacementIsLeftAlone(t *testing.T) {
	w := newWorld(t, homeOf(quotaOf(1)), placementOf("dev"))
	w.reconcile()
	w.pause("dev", true)
	w.ask("dev", version("2"))
	fresh := placementOf("new")
	fresh.Annotations = map[string]string{meta.AnnotationKeyReconciliationPaused: "true"}
	planned := placementOf("planned", dryRun)
	planned.Annotations = fresh.Annotations
	w.create(fresh, planned, placementOf("other"))
	before := map[string]*v1alpha1.Placement{"dev": w.placement("dev"), "new": w.placement("new"), "planned": w.placement("planned")}
	w.reconcile()
	for env, want := range before {
		if diff := cmp.Diff(want, w.placement(env)); diff != "" {
			t.Errorf("%s was written: -before, +now:\n%s", env, diff)
		}
	}
	if es := w.ledger().Entries; len(es) != 1 || es[0].Placement != "acme-dev" || es[0].Grant.Version != "1.4.2" {
		t.Errorf("ledger %+v", es)
	}
	if r := w.placement("other").Status.AtProvider.Refusal; r == nil || r.Reason != string(steading.ReasonEnvironmentLimit) {
		t.Errorf("what is paused does not count: %+v", r)
	}

	w.delete(w.placement("dev"))
	w.reconcile()
	if p := w.placement("dev"); len(p.Finalizers) != 1 || len(w.ledger().Entries) == 0 {
		t.Errorf("it is let go: finalizers %v, ledger %+v", p.Finalizers, w.ledger().Entries)
	}

	w.pause("dev", false)
	w.pause("new", false)
	w.reconcile()
	if w.get(&v1alpha1.Placement{}, "acme-dev") {
		t.Error("it stays when it is not paused any more")
	}
	if w.placement("new").Status.AtProvider.DecidedGeneration == 0 {
		t.Error("it is not decided on when it is not paused any more")
	}
}

func TestWhatNeverRanLeavesNoUsageEvent(t *testing.T) {
	w := newWorld(t, homeOf(), placementOf("dev"))
	w.reconcile()
	w.delete(placementOf("dev"))
	w.reconcile()
	events := &v1alpha1.UsageEventList{}
	if err := w.kube.List(context.Background(), events); err != nil {
		t.Fatal(err)
	}
	if len(events.Items) != 0 || w.get(&v1alpha1.Placement{}, "acme-dev") {
		t.Errorf("events %+v", events.Items)
	}
}

func TestTheLedgerGoesWithTheTenant(t *testing.T) {
	w := newWorld(t, homeOf(), placementOf("dev"))
	w.reconcile()
	w.delete(placementOf("dev")).delete(homeOf())
	w.reconcile()
	if res := w.reconcile(); w.get(&v1alpha1.Ledger{}, "acme") || !res.IsZero() {
		t.Errorf("the ledger stays; result %+v", res)
	}
}

func TestNothingIsWrittenTwice(t *testing.T) {
	w := newWorld(t, homeOf(quotaOf(1)), placementOf("a"), placementOf("b"), placementOf("c", dryRun), placementOf("d"), boundaryOf("d"))
	w.reconcile()
	w.delete(placementOf("d"))
	w.reconcile()
	w.clock.Step(time.Minute)
	w.reconcile()
	w.through(interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return errBroken },
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return errBroken },
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return errBroken
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errBroken
		},
	})
	w.clock.Step(time.Minute)
	if res := w.reconcile(); res.RequeueAfter < 50*time.Minute {
		t.Errorf("result %+v", res)
	}
}
