package pool

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/google/go-cmp/cmp"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/server"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// TestSetup adds the controller to a manager of which all kinds are known, and tells the age of looks from then on; a second one
// is refused.
func TestSetup(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, forgejov1.AddToScheme, steading.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://192.0.2.1"}, ctrl.Options{
		Scheme: s, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // -count runs it again.
		MapperProvider: func(*rest.Config, *http.Client) (kmeta.RESTMapper, error) {
			m := kmeta.NewDefaultRESTMapper(nil)
			for gvk := range s.AllKnownTypes() {
				m.Add(gvk, kmeta.RESTScopeNamespace)
			}
			return m, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	servers := server.New(server.Options{Reader: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Clock: clock.RealClock{}, Log: logging.NewNopLogger()})
	t.Cleanup(func() { metrics.Registry.Unregister(servers) })
	o := Options{
		Options: kit.Options{
			Log: logging.NewNopLogger(), Clock: clock.RealClock{}, Limiter: ratelimiter.NewGlobal(10), MaxReconciles: 1,
			Claims: kit.NewClaimReporter(mgr.GetClient(), mgr.GetAPIReader(), record.NewFakeRecorder(1)),
		},
		Servers: servers, Guard: &fakeGuard{}, Check: func(forgejov1.RunnerConfig, map[string]string) error { return nil },
	}
	if err := Setup(mgr, o); err != nil {
		t.Fatal(err)
	}
	if err := Setup(mgr, o); err == nil {
		t.Error("the age of looks is told twice")
	}
}

// TestWhatWakesAPool: what changes its numbers, and nothing that is its own doing or does not concern it.
func TestWhatWakesAPool(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*forgejov1.RunnerInstance)
		want   bool
	}{
		"Nothing":    {"Nothing changed.", func(*forgejov1.RunnerInstance) {}, false},
		"Message":    {"What a runner waits for is its own to say.", func(i *forgejov1.RunnerInstance) { i.Status.AtProvider.Message = "x" }, false},
		"Annotation": {"That it was counted the pool wrote.", marked, false},
		"Registered": {"It can take a job.", registered(7), true},
		"State":      {"It has a job.", func(i *forgejov1.RunnerInstance) { i.Status.AtProvider.State = forgejov1.StateActive }, true},
		"Child":      {"It is there.", func(i *forgejov1.RunnerInstance) { i.Status.AtProvider.Child = &forgejov1.ChildReference{Name: "x"} }, true},
		"Judged":     {"It is judged.", func(i *forgejov1.RunnerInstance) { i.Status.AtProvider.Phase = forgejov1.RunnerFailed }, true},
		"Released":   {"Its slot is free.", func(i *forgejov1.RunnerInstance) { i.Status.AtProvider.Released = true }, true},
		"Deleted":    {"It was killed.", deleted, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := instance("acme-linux-00000001")
			after := *before.DeepCopy()
			tc.change(&after)
			if got := concernsPool().Update(event.UpdateEvent{ObjectOld: &before, ObjectNew: &after}); got != tc.want {
				t.Errorf("%s The pool is woken: %t", tc.reason, got)
			}
		})
	}
	i := instance("acme-linux-00000001")
	if concernsPool().Create(event.CreateEvent{Object: &i}) || !concernsPool().Delete(event.DeleteEvent{Object: &i}) {
		t.Error("it is woken by a runner that it made, or not by one that goes")
	}
	if got := poolOf(t.Context(), &i); got != nil {
		t.Errorf("a runner of no pool wakes %v", got)
	}
	i.Labels = map[string]string{names.LabelPool: "acme-linux"}
	if diff := cmp.Diff([]reconcile.Request{{NamespacedName: linux}}, poolOf(t.Context(), &i)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestWhichPoolsAreWoken by what pools share.
func TestWhichPoolsAreWoken(t *testing.T) {
	w := newWorld(t)
	other := w.runner(func(s *steading.RunnerPoolSpec) { s.JobNamespace = "acme-other" })
	other.Name = "acme-other"
	w.must(w.kube.Create(context.Background(), other))
	ns := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "acme-ci"}}
	for _, tc := range []struct {
		reason string
		by     handler.EventHandler
		want   []string
	}{
		{"The operator's image is all pools'.", enqueueAll(w.kube), []string{"acme-linux", "acme-other"}},
		{"A namespace is of those that name it.", enqueueOfNamespace(w.kube), []string{"acme-linux"}},
	} {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second))
		tc.by.Create(t.Context(), event.TypedCreateEvent[client.Object]{Object: ns}, q)
		var got []string
		for q.Len() > 0 {
			r, _ := q.Get()
			got = append(got, r.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
		}
		q.ShutDown()
	}
}
