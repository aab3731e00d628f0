package kit

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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

// taken off the queue.
func taken(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	r, _ := q.Get()
	q.Done(r)
}

func itself(c client.Client) Concerned {
	return func(ctx context.Context, r reconcile.Request) ([]Conditioned, error) {
		b := &v1alpha1.Boundary{}
		return []Conditioned{b}, c.Get(ctx, r.NamespacedName, b)
	}
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
