package kit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

func TestAfter(t *testing.T) {
	failed := errors.New("failed")
	cases := map[string]struct {
		reason string
		inner  reconcile.Result
		err    error
		after  []time.Duration
		want   reconcile.Result
	}{
		"NotAsked":    {"What nobody asked for is not changed.", reconcile.Result{RequeueAfter: time.Hour}, nil, nil, reconcile.Result{RequeueAfter: time.Hour}},
		"Requeue":     {"Instead of the rate limiter's time.", reconcile.Result{Requeue: true}, nil, []time.Duration{time.Minute}, reconcile.Result{RequeueAfter: time.Minute}}, //nolint:staticcheck // What managed.Reconciler returns.
		"Poll":        {"Instead of the poll interval.", reconcile.Result{RequeueAfter: time.Hour}, nil, []time.Duration{time.Minute}, reconcile.Result{RequeueAfter: time.Minute}},
		"LastCounts":  {"The last call counts.", reconcile.Result{RequeueAfter: time.Hour}, nil, []time.Duration{time.Second, time.Minute}, reconcile.Result{RequeueAfter: time.Minute}},
		"Failed":      {"A failure is retried by the rate limiter.", reconcile.Result{}, failed, []time.Duration{time.Minute}, reconcile.Result{}},
		"NothingMore": {"What is gone is not looked at again.", reconcile.Result{}, nil, []time.Duration{time.Minute}, reconcile.Result{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := WithAfter(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				for _, d := range tc.after {
					inner, cancel := context.WithCancel(ctx)
					After(inner, d)
					cancel()
				}
				return tc.inner, tc.err
			}))
			have, err := r.Reconcile(context.Background(), reconcile.Request{})
			if have != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%s: have %+v, %v", tc.reason, have, err)
			}
		})
	}
	After(context.Background(), time.Minute) // Outside a reconcile it does nothing.
}

// TestWhatCameTooLateIsToldSoon: an object that somebody else wrote while it was looked at is looked at again when the rate
// limiter says, whatever was asked for. What was seen of it has not been told.
func TestWhatCameTooLateIsToldSoon(t *testing.T) {
	conflict := kerrors.NewConflict(schema.GroupResource{Resource: "homes"}, "acme", errors.New("changed"))
	refuse := interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return conflict },
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return conflict
		},
	}
	h := &v1alpha1.Home{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme"}}
	cases := map[string]struct {
		reason string
		write  func(context.Context, client.Client) error
	}{
		"Status":   {"A status.", func(ctx context.Context, c client.Client) error { return c.Status().Update(ctx, h) }},
		"Object":   {"An object.", func(ctx context.Context, c client.Client) error { return c.Update(ctx, h) }},
		"External": {"What the outside world said.", func(ctx context.Context, _ client.Client) error { return observing(ctx, conflict) }},
	}
	for name, tc := range cases {
		for broken, want := range map[bool]reconcile.Result{true: {Requeue: true}, false: {RequeueAfter: time.Hour}} {
			t.Run(fmt.Sprintf("%s/%t", name, broken), func(t *testing.T) {
				f := interceptor.Funcs{}
				if broken {
					f = refuse
				}
				c := notingClient{kube(t, f, h.DeepCopy())}
				r := WithAfter(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
					After(ctx, time.Hour)
					if broken {
						_ = tc.write(ctx, c) // Dropped, as Crossplane's reconciler does.
					}
					return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // What managed.Reconciler returns.
				}))
				if have, err := r.Reconcile(t.Context(), reconcile.Request{}); have != want || err != nil {
					t.Errorf("%s have %+v, %v, want %+v", tc.reason, have, err, want)
				}
			})
		}
	}
}

// observing is what an external client is heard to say.
func observing(ctx context.Context, err error) error {
	_, err = external[*v1alpha1.Home]{managed.TypedExternalClientFns[*v1alpha1.Home]{
		ObserveFn: func(context.Context, *v1alpha1.Home) (managed.ExternalObservation, error) {
			return managed.ExternalObservation{}, err
		},
	}}.Observe(ctx, &v1alpha1.Home{})
	return err
}

func TestPoll(t *testing.T) {
	p := Poll{Ready: 10 * time.Minute, NotReady: 5 * time.Second}
	h := &v1alpha1.Home{}
	if have := p.hook(h, time.Hour); have != 5*time.Second {
		t.Errorf("not ready: %s", have)
	}
	MarkReady(h)
	seen := map[time.Duration]bool{}
	for range 50 {
		d := p.hook(h, time.Hour)
		if d < 9*time.Minute || d > 11*time.Minute {
			t.Fatalf("ready: %s", d)
		}
		seen[d] = true
	}
	if len(seen) < 10 {
		t.Error("no jitter")
	}
}

func TestReadinessSaysOfWhichGeneration(t *testing.T) {
	h := &v1alpha1.Home{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	MarkReady(h)
	if c := h.GetCondition(xpv2.TypeReady); c.ObservedGeneration != 3 || !IsReady(h) {
		t.Errorf("condition %+v", c)
	}
	MarkNotReady(h, "Because", "of this")
	if c := h.GetCondition(xpv2.TypeReady); c.ObservedGeneration != 3 || IsReady(h) || c.Reason != "Because" || c.Message != "of this" {
		t.Errorf("condition %+v", c)
	}
}

func TestTracker(t *testing.T) {
	terminating := errors.New("namespace is being terminated")
	c := kube(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return terminating
	}})
	tr := NewTracker(c, &v1alpha1.ProviderConfigUsage{})
	h := &v1alpha1.Home{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme", UID: "home"}}
	h.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "default"})
	if err := tr.Track(context.Background(), h); !errors.Is(err, terminating) {
		t.Errorf("a use that cannot be recorded is an error: %v", err)
	}
	now := metav1.Now()
	h.DeletionTimestamp = &now
	if err := tr.Track(context.Background(), h); err != nil {
		t.Errorf("but not while it is being deleted (crossplane-runtime#1150): %v", err)
	}
}

func TestDrifted(t *testing.T) {
	base := func(edit ...func(*corev1.ResourceQuota)) client.Object {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q", ResourceVersion: "1"}}
		for _, e := range edit {
			e(q)
		}
		return q
	}
	now := metav1.Now()
	cases := map[string]struct {
		reason string
		edit   func(*corev1.ResourceQuota)
		want   bool
	}{
		"Version": {"A new version of the same is no drift.", func(q *corev1.ResourceQuota) { q.ResourceVersion = "2" }, false},
		"Status":  {"Nor is its status.", func(q *corev1.ResourceQuota) { q.Status.Used = corev1.ResourceList{"pods": {}} }, false},
		"Spec":    {"Its spec is.", func(q *corev1.ResourceQuota) { q.Spec.Hard = corev1.ResourceList{"pods": {}} }, true},
		"Labels":  {"So are its labels.", func(q *corev1.ResourceQuota) { q.Labels = map[string]string{"a": "b"} }, true},
		"Leaving": {"What is being deleted is watched closely.", func(q *corev1.ResourceQuota) { q.DeletionTimestamp = &now }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if have := Drifted().Update(event.UpdateEvent{ObjectOld: base(), ObjectNew: base(tc.edit)}); have != tc.want {
				t.Errorf("%s: have %t", tc.reason, have)
			}
		})
	}
	if Drifted().Create(event.CreateEvent{Object: base()}) || !Drifted().Delete(event.DeleteEvent{Object: base()}) {
		t.Error("what is made is ours; what is deleted is drift")
	}
}

func TestOperatorSpoke(t *testing.T) {
	claim := func(k, v string) client.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{k: v}}}
	}
	p := operatorSpoke()
	for _, a := range []string{names.AnnotationAbandon, names.AnnotationAdoptFrom} {
		if !p.Update(event.UpdateEvent{ObjectOld: claim("", ""), ObjectNew: claim(a, "x")}) {
			t.Errorf("%s wakes nobody", a)
		}
	}
	if p.Update(event.UpdateEvent{ObjectOld: claim("", ""), ObjectNew: claim("other", "x")}) {
		t.Error("any annotation wakes")
	}
}
