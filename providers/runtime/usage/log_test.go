package usage

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newLog(t *testing.T) (Log, client.Client) {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(s).Build()
	return Log{Client: c, Reader: c}, c
}

func entry(env string, tr v1alpha1.Transition, revision int64, at time.Duration) Entry {
	return Entry{
		Identity:   v1alpha1.Identity{Tenant: "acme", Environment: env, UID: "uid-acme-dev"},
		Transition: tr, Revision: revision, Time: epoch.Add(at), Version: "1.4.2", Context: "edge",
		Caps: steading.MustResources("4", "16Gi", "2Gi"),
	}
}

func record(t *testing.T, l Log, es ...Entry) {
	t.Helper()
	for _, e := range es {
		if err := l.Record(context.Background(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATransitionIsRecordedOnce(t *testing.T) {
	l, c := newLog(t)
	first := entry("dev", v1alpha1.TransitionProvisioned, 1, 0)
	again := first
	again.Time = epoch.Add(time.Hour)
	first.Made, again.Made = epoch, epoch.In(time.FixedZone("", 3600))
	record(t, l, first, again)

	events := &v1alpha1.UsageEventList{}
	if err := c.List(context.Background(), events); err != nil {
		t.Fatal(err)
	}
	if len(events.Items) != 1 || !events.Items[0].Spec.Time.Time.Equal(epoch) {
		t.Fatalf("events %+v", events.Items)
	}
	want := v1alpha1.UsageEventSpec{
		Identity: first.Identity, Transition: v1alpha1.TransitionProvisioned, Time: metav1.NewTime(epoch),
		Version: "1.4.2", Context: "edge", Caps: first.Caps,
	}
	have := events.Items[0].Spec
	have.Time = want.Time
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
}

func TestNamesTellTransitionsApart(t *testing.T) {
	seen := map[string]string{}
	other := entry("dev", v1alpha1.TransitionProvisioned, 1, 0)
	other.Identity.UID = "another"
	anew := entry("dev", v1alpha1.TransitionProvisioned, 1, 0)
	anew.Made = epoch
	for what, e := range map[string]Entry{
		"revision 1":        entry("dev", v1alpha1.TransitionProvisioned, 1, 0),
		"revision 2":        entry("dev", v1alpha1.TransitionProvisioned, 2, 0),
		"stopped":           entry("dev", v1alpha1.TransitionStopped, 2, 0),
		"deleted":           entry("dev", v1alpha1.TransitionDeleted, 0, 0),
		"another composite": other,
		"installed anew":    anew,
	} {
		if was, ok := seen[e.Name()]; ok {
			t.Errorf("%s and %s are both called %s", was, what, e.Name())
		}
		seen[e.Name()] = what
	}
}

// later is an entry of another version.
func later(e Entry, version string) Entry {
	e.Version = version
	return e
}

func TestProvisioned(t *testing.T) {
	cases := map[string]struct {
		reason string
		events []Entry
		want   string
	}{
		"Never":       {"What has no events never ran.", nil, ""},
		"StoppedOnly": {"To be stopped is not to have been provisioned.", []Entry{entry("dev", v1alpha1.TransitionStopped, 1, 0)}, ""},
		"Once":        {"It was, whatever came after.", []Entry{entry("dev", v1alpha1.TransitionProvisioned, 1, 0), entry("dev", v1alpha1.TransitionStopped, 2, time.Hour)}, "1.4.2"},
		"Twice": {"The last time counts.", []Entry{
			entry("dev", v1alpha1.TransitionProvisioned, 1, time.Minute), later(entry("dev", v1alpha1.TransitionProvisioned, 3, time.Hour), "2"),
			entry("dev", v1alpha1.TransitionProvisioned, 2, 0),
		}, "2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, _ := newLog(t)
			record(t, l, tc.events...)
			have, err := l.Provisioned(context.Background(), "uid-acme-dev")
			if err != nil || (have == nil) != (tc.want == "") || have != nil && have.Version != tc.want {
				t.Errorf("%s: have %+v, %v", tc.reason, have, err)
			}
		})
	}
}

func TestRecentIsNewestFirst(t *testing.T) {
	l, c := newLog(t)
	record(t, l,
		entry("a", v1alpha1.TransitionDeleted, 0, time.Minute),
		entry("a", v1alpha1.TransitionProvisioned, 1, 0),
		entry("b", v1alpha1.TransitionProvisioned, 2, time.Minute),
		entry("c", v1alpha1.TransitionProvisioned, 3, time.Hour),
	)
	rs, err := Recent(context.Background(), c, "acme", 3)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, r := range rs {
		have = append(have, r.Environment+" "+r.Transition)
	}
	if diff := cmp.Diff([]string{"c Provisioned", "a Deleted", "b Provisioned"}, have); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
	if rs, err := Recent(context.Background(), c, "globex", 3); err != nil || len(rs) != 0 {
		t.Errorf("another tenant sees %+v, %v", rs, err)
	}
}
