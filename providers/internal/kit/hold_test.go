package kit

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/definitions"
	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// recorded events, as "Reason message".
type recorded []string

func (r *recorded) Event(_ runtime.Object, e event.Event) {
	*r = append(*r, string(e.Reason)+" "+e.Message)
}

func (r *recorded) WithAnnotations(...string) event.Recorder { return r }

// TestHeldIsNotReconciled while its definition is older, says so once, and goes on by itself.
func TestHeldIsNotReconciled(t *testing.T) {
	w, events := serve(t), &recorded{}
	d := w.definitions(events)
	b := &v1alpha1.Boundary{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-dev"}}
	c := kube(t, interceptor.Funcs{}, b)
	req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)}
	reconciled := 0
	o := Options{Definitions: d}
	r := o.Held("Boundary", c, itself(c), reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		reconciled++
		return reconcile.Result{}, nil
	}))
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	if err := o.Released("Boundary").Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}

	d.look(t.Context())
	must(r.Reconcile(t.Context(), req))(t)
	if reconciled != 1 || q.Len() != 0 {
		t.Fatalf("it is reconciled %d times, %d wait", reconciled, q.Len())
	}
	reconciled = 0
	mend := w.age(t, boundaries, "forProvider")
	d.look(t.Context())
	if q.Len() != 1 {
		t.Fatalf("%d are to say that they are held, want 1", q.Len())
	}
	taken(q)
	var version string
	for range 2 {
		if res := must(r.Reconcile(t.Context(), req))(t); res.RequeueAfter != 30*time.Second || reconciled != 0 {
			t.Errorf("it is reconciled %d times, and then after %s", reconciled, res.RequeueAfter)
		}
		now := boundaryNow(t, c, b)
		have := now.GetCondition(steading.ConditionDefinitionsCurrent)
		if have.Status != "False" || have.Reason != steading.ReasonDefinitionsOutdated || !strings.Contains(have.Message, "spec.forProvider") || have.LastTransitionTime.IsZero() {
			t.Errorf("condition %+v", have)
		}
		if version != "" && version != now.ResourceVersion {
			t.Error("it is written again though nothing has changed")
		}
		version = now.ResourceVersion
	}
	if want := (recorded{"DefinitionsOutdated " + boundaryNow(t, c, b).GetCondition(steading.ConditionDefinitionsCurrent).Message}); !cmp.Equal(want, *events) {
		t.Errorf("events %v, want %v", *events, want)
	}

	mend()
	d.look(t.Context())
	if q.Len() != 1 {
		t.Fatalf("%d wait to go on, want 1", q.Len())
	}
	if res := must(r.Reconcile(t.Context(), req))(t); res.RequeueAfter == 0 || reconciled != 0 {
		t.Errorf("what has just been written is not in the cache yet: after %s, reconciled %d times", res.RequeueAfter, reconciled)
	}
	must(r.Reconcile(t.Context(), req))(t)
	if have := boundaryNow(t, c, b).GetCondition(steading.ConditionDefinitionsCurrent); have.Status != "True" || reconciled != 1 || len(*events) != 1 {
		t.Errorf("condition %+v, reconciled %d times, events %v", have, reconciled, *events)
	}
}

// TestNothingIsSaidWhereNothingWasWrong ever.
func TestNothingIsSaidWhereNothingWasWrong(t *testing.T) {
	w := serve(t)
	d := w.definitions(event.NewNopRecorder())
	d.look(t.Context())
	b := &v1alpha1.Boundary{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-dev"}}
	c := kube(t, interceptor.Funcs{}, b)
	reconciled := false
	r := Options{Definitions: d}.Held("Boundary", c, itself(c), reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		reconciled = true
		return reconcile.Result{}, nil
	}))
	must(r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)}))(t)
	if now := boundaryNow(t, c, b); len(now.Status.Conditions) != 0 || !reconciled {
		t.Errorf("reconciled %t, conditions %+v", reconciled, now.Status.Conditions)
	}
}

// TestNobodyGoesBeforeTheFirstLook at the definitions.
func TestNobodyGoesBeforeTheFirstLook(t *testing.T) {
	d := serve(t).definitions(event.NewNopRecorder())
	c := kube(t, interceptor.Funcs{})
	r := Options{Definitions: d}.Held("Boundary", c, itself(c), reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		t.Error("it is reconciled")
		return reconcile.Result{}, nil
	}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Reconcile(ctx, reconcile.Request{}); err == nil {
		t.Error("it did not wait")
	}
}

// TestClaimThatGoesSaysWhatHoldsIt: while a claim is deleted no function tells it that what would delete it is held.
func TestClaimThatGoesSaysWhatHoldsIt(t *testing.T) {
	w := serve(t)
	d := w.definitions(event.NewNopRecorder())
	mend := w.age(t, boundaries, "forProvider")
	d.look(t.Context())
	b := &v1alpha1.Boundary{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-dev", Finalizers: []string{"example.com/hold"}}}
	b.Spec.ForProvider.Claim = dev.ClaimReference
	claims, c, events := reporter(t, interceptor.Funcs{}, leaving(), b)
	req, reconciled := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)}, false
	r := Options{Definitions: d, Claims: claims}.Held("Boundary", c, itself(c), reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		reconciled = true
		return reconcile.Result{}, nil
	}))

	must(r.Reconcile(t.Context(), req))(t)
	if e := read(t, c); len(e.Status.Conditions) != 2 || len(events) != 0 {
		t.Errorf("what is not being deleted tells the claim, whose function does: %+v", e.Status.Conditions)
	}
	if err := c.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		must(r.Reconcile(t.Context(), req))(t)
		e := read(t, c)
		current, blocked := e.Status.GetCondition(steading.ConditionDefinitionsCurrent), e.Status.GetCondition(steading.ConditionDeletionBlocked)
		if current.Status != "False" || current.Reason != steading.ReasonDefinitionsOutdated || !strings.Contains(current.Message, "spec.forProvider") {
			t.Errorf("condition %+v", current)
		}
		if blocked.Status != "True" || blocked.Reason != current.Reason || blocked.Message != current.Message || e.Status.Phase != steading.EnvironmentDeletionBlocked {
			t.Errorf("phase %s, condition %+v", e.Status.Phase, blocked)
		}
	}
	if len(events) != 1 || !strings.HasPrefix(<-events, "Warning DefinitionsOutdated ") {
		t.Error("it is not said once in an event")
	}

	mend()
	d.look(t.Context())
	for range 2 {
		must(r.Reconcile(t.Context(), req))(t)
	}
	e := read(t, c)
	if current := e.Status.GetCondition(steading.ConditionDefinitionsCurrent); current.Status != "True" || !reconciled {
		t.Errorf("condition %+v, reconciled %t", current, reconciled)
	}
	if e.Status.Phase != steading.EnvironmentDeleting || e.Status.GetCondition(steading.ConditionDeletionBlocked).Status == "True" {
		t.Errorf("it still is said to be held up: %+v", e.Status)
	}
}

// TestWhatBlocksIsLeft to whoever says it, when definitions hold too.
func TestWhatBlocksIsLeft(t *testing.T) {
	r, c, _ := reporter(t, interceptor.Funcs{}, leaving())
	if err := r.Blocked(t.Context(), dev, steading.ReasonNamespaceBlocked, "held"); err != nil {
		t.Fatal(err)
	}
	for _, v := range []definitions.Verdict{{Reason: steading.ReasonDefinitionsOutdated, Message: "old"}, {}} {
		if err := r.Judged(t.Context(), dev, v); err != nil {
			t.Fatal(err)
		}
		e := read(t, c)
		if b := e.Status.GetCondition(steading.ConditionDeletionBlocked); b.Message != "held" || e.Status.Phase != steading.EnvironmentDeletionBlocked {
			t.Errorf("phase %s, %+v", e.Status.Phase, b)
		}
		if want, have := v.Condition(), e.Status.GetCondition(steading.ConditionDefinitionsCurrent); !have.Equal(want) {
			t.Errorf("condition %+v, want %+v", have, want)
		}
	}
}

// TestConfigsAreHeld as everything else that their provider writes.
func TestConfigsAreHeld(t *testing.T) {
	w := serve(t)
	d := w.definitions(event.NewNopRecorder())
	mend := w.age(t, "clusterproviderconfigs.runtime.steading.dev", "allowedTargets")
	d.look(t.Context())
	config := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	c := kube(t, interceptor.Funcs{}, config)
	o := Options{Definitions: d, Log: logging.NewNopLogger(), Record: event.NewNopRecorder()}
	mgr := &fake.Manager{Client: c, Scheme: c.Scheme()}
	r := heldConfig(mgr, o, newConfigKeeper(mgr, o, v1alpha1.GroupVersion.WithKind("ClusterProviderConfig")))
	reconciled := func() *v1alpha1.ClusterProviderConfig {
		t.Helper()
		for range 3 {
			must(r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(config)}))(t)
		}
		now := &v1alpha1.ClusterProviderConfig{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(config), now); err != nil {
			t.Fatal(err)
		}
		return now
	}
	now := reconciled()
	if have := now.GetCondition(steading.ConditionDefinitionsCurrent); have.Reason != steading.ReasonDefinitionsOutdated || strings.Count(have.Message, "spec.allowedTargets") != 1 {
		t.Errorf("condition %+v, want one that names the field, once", have)
	}
	if len(now.Finalizers) != 0 {
		t.Errorf("it is reconciled: finalizers %v", now.Finalizers)
	}
	mend()
	d.look(t.Context())
	now = reconciled()
	if have := now.GetCondition(steading.ConditionDefinitionsCurrent); have.Status != "True" || len(now.Finalizers) != 1 {
		t.Errorf("condition %+v, finalizers %v", have, now.Finalizers)
	}
}

// taken off the queue.
func taken(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	r, _ := q.Get()
	q.Done(r)
}

// itself is the Boundary that a request names.
func itself(c client.Client) Concerned {
	return Itself(&fake.Manager{Client: c, Scheme: c.Scheme()}, v1alpha1.GroupVersion.WithKind(v1alpha1.BoundaryKind),
		func(b *v1alpha1.Boundary) Claim { return EnvironmentClaim(b.Spec.ForProvider.Claim) })
}

func boundaryNow(t *testing.T, c client.Client, b *v1alpha1.Boundary) *v1alpha1.Boundary {
	t.Helper()
	now := &v1alpha1.Boundary{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(b), now); err != nil {
		t.Fatal(err)
	}
	return now
}

func must(r reconcile.Result, err error) func(*testing.T) reconcile.Result {
	return func(t *testing.T) reconcile.Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}
