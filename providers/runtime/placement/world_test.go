package placement

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// world is an API server with tenant acme in it, and a reconciler of placements.
type world struct {
	t      *testing.T
	kube   client.WithWatch
	clock  *clocktesting.FakeClock
	charts *fakeCharts
	r      *Reconciler
}

// fakeCharts knows the chart, or says why not.
type fakeCharts struct{ err error }

func (f *fakeCharts) Resolve(string, ChartSource) (ResolvedChart, error) {
	if f.err != nil {
		return ResolvedChart{}, f.err
	}
	return ResolvedChart{Digest: pin.Digest, Floor: testFloor(false), DockerFloor: testFloor(true)}, nil
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{steading.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	kube := fake.NewClientBuilder().WithScheme(s).
		WithStatusSubresource(&v1alpha1.Placement{}, &v1alpha1.Home{}, &v1alpha1.Cluster{}).
		WithObjects(&v1alpha1.ClusterProviderConfig{
			ObjectMeta: v1.ObjectMeta{Name: names.DefaultProviderConfig},
			Spec:       v1alpha1.ProviderConfigSpec{RuntimeChart: v1alpha1.ChartSource{Repository: pin.Repository, Version: pin.Version}},
		}).
		WithObjects(objs...).Build()
	w := &world{t: t, kube: kube, clock: clocktesting.NewFakeClock(epoch), charts: &fakeCharts{}}
	w.r = w.writer(kube)
	return w
}

// writer is one more reconciler of the same API server, which it sees through c.
func (w *world) writer(c client.Client) *Reconciler {
	return newReconciler(c, c, kit.Options{Log: logging.NewNopLogger(), Clock: w.clock, Poll: kit.Poll{Ready: time.Hour, NotReady: time.Hour}}, w.charts)
}

func (w *world) through(f interceptor.Funcs) *world {
	w.r = w.writer(interceptor.NewClient(w.kube, f))
	return w
}

var acme = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: names.SystemNamespace, Name: "acme"}}

func (w *world) reconcile() reconcile.Result {
	w.t.Helper()
	res, err := w.r.Reconcile(context.Background(), acme)
	if err != nil {
		w.t.Fatalf("reconcile: %v", err)
	}
	return res
}

func (w *world) create(objs ...client.Object) *world {
	w.t.Helper()
	for _, o := range objs {
		if err := w.kube.Create(context.Background(), o); err != nil {
			w.t.Fatal(err)
		}
	}
	return w
}

func (w *world) delete(o client.Object) *world {
	w.t.Helper()
	if err := w.kube.Delete(context.Background(), o); err != nil {
		w.t.Fatal(err)
	}
	return w
}

// ask for something else, as a new generation.
func (w *world) ask(env string, edit ...func(*v1alpha1.Request)) {
	w.t.Helper()
	p := w.placement(env)
	for _, e := range edit {
		e(&p.Spec.ForProvider.Request)
	}
	p.Generation++
	if err := w.kube.Update(context.Background(), p); err != nil {
		w.t.Fatal(err)
	}
}

// pause a Placement, or have it go on.
func (w *world) pause(env string, paused bool) {
	w.t.Helper()
	p := w.placement(env)
	p.SetAnnotations(map[string]string{meta.AnnotationKeyReconciliationPaused: strconv.FormatBool(paused)})
	if err := w.kube.Update(context.Background(), p); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(o client.Object, name string) bool {
	w.t.Helper()
	err := w.kube.Get(context.Background(), client.ObjectKey{Namespace: names.SystemNamespace, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *world) placement(env string) *v1alpha1.Placement {
	w.t.Helper()
	p := &v1alpha1.Placement{}
	if !w.get(p, "acme-"+env) {
		w.t.Fatalf("no placement acme-%s", env)
	}
	return p
}

func (w *world) ledger() *v1alpha1.Ledger {
	w.t.Helper()
	l := &v1alpha1.Ledger{}
	w.get(l, "acme")
	return l
}

func (w *world) home() *v1alpha1.Home {
	w.t.Helper()
	h := &v1alpha1.Home{}
	if !w.get(h, "acme") {
		w.t.Fatal("no home")
	}
	return h
}

func metaOf(name, env string) v1.ObjectMeta {
	m := v1.ObjectMeta{
		Namespace: names.SystemNamespace, Name: name, UID: types.UID(name), Generation: 1,
		Labels: map[string]string{names.LabelTenant: "acme", names.LabelComposite: "xr-acme"},
	}
	if env != "" {
		m.UID = types.UID("placement-" + env)
		m.Labels[names.LabelEnvironment] = env
		m.Labels[names.LabelComposite] = "xr-" + env
	}
	return m
}

func homeOf(edit ...func(*steading.TenantSpec)) *v1alpha1.Home {
	h := &v1alpha1.Home{ObjectMeta: metaOf("acme", "")}
	h.Status.AtProvider.Namespace = "tenant-acme"
	for _, e := range edit {
		e(&h.Spec.ForProvider.Settings)
	}
	return h
}

func placementOf(env string, edit ...func(*v1alpha1.Request)) *v1alpha1.Placement {
	return &v1alpha1.Placement{ObjectMeta: metaOf("acme-"+env, env), Spec: v1alpha1.PlacementSpec{ForProvider: v1alpha1.PlacementParameters{
		Identity: v1alpha1.Identity{Tenant: "acme", Environment: env, UID: types.UID("xr-" + env)},
		Claim:    v1alpha1.ClaimReference{Namespace: "tenant-acme", Name: env},
		Request:  asks(env, edit...).Request,
	}}}
}

func boundaryOf(env string) *v1alpha1.Boundary {
	b := &v1alpha1.Boundary{ObjectMeta: metaOf("acme-"+env, env)}
	b.UID = types.UID("boundary-" + env)
	return b
}

func claimOf(env string, at time.Duration) *steading.Environment {
	return &steading.Environment{ObjectMeta: v1.ObjectMeta{Namespace: "tenant-acme", Name: env, CreationTimestamp: v1.NewTime(epoch.Add(at))}}
}

var errBroken = errors.New("broken")
