package edge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/target"
)

var (
	id  = v1alpha1.Identity{Tenant: "acme", Environment: "dev", UID: "uid-1"}
	now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

// A world is a control plane and a cluster, which are one here, with operators that do what they are told.
type world struct {
	client.WithWatch
	t      *testing.T
	e      *external
	clock  *clocktesting.FakeClock
	events *record.FakeRecorder

	// absent kinds have no operator.
	absent map[schema.GroupVersionKind]bool
	// unreachable is whether the environment's cluster answers.
	unreachable bool
	// because of this it does not. Nil: nobody knows.
	because error
	// notYet is whether the environment's Context was not looked at yet.
	notYet bool
	// writes that were made, by verb and object.
	writes []string
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, steading.AddToScheme, v1alpha1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range []schema.GroupVersionKind{dnsEndpointKind, certificateKind, requestKind, challengeKind, httpRouteKind} {
		s.AddKnownTypeWithName(k, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(k.GroupVersion().WithKind(k.Kind+"List"), &unstructured.UnstructuredList{})
	}
	w := &world{t: t, clock: clocktesting.NewFakeClock(now), events: record.NewFakeRecorder(32), absent: map[schema.GroupVersionKind]bool{}}
	w.WithWatch = fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).
		WithStatusSubresource(&v1alpha1.EdgeRemainder{}).
		WithIndex(&v1alpha1.Edge{}, hostIndex, hostsOf).
		WithInterceptorFuncs(w.intercept()).Build()
	o := kit.Options{
		Log: logging.NewNopLogger(), Clock: w.clock, Poll: kit.Poll{Ready: time.Hour, NotReady: time.Hour},
		Claims: kit.NewClaimReporter(w, w, w.events), Record: event.NewNopRecorder(),
	}
	w.e = &external{o: o, control: w, system: w, cache: w, operators: w, reach: w.reach}
	return w
}

// intercept notes writes, and knows no kinds that are absent.
func (w *world) intercept() interceptor.Funcs {
	note := func(verb string, obj client.Object) { w.writes = append(w.writes, verb+" "+called(obj)) }
	unknown := func(obj runtime.Object) error {
		k := obj.GetObjectKind().GroupVersionKind()
		for a := range w.absent {
			if k == a || k.Group == a.Group && k.Kind == a.Kind+"List" {
				return &noMatch
			}
		}
		return nil
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return errors.Join(unknown(obj), c.Get(ctx, key, obj, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := unknown(list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			note("create", obj)
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			note("update", obj)
			return c.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			note("patch", obj)
			return c.Patch(ctx, obj, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			note("delete", obj)
			return c.Delete(ctx, obj, opts...)
		},
	}
}

var noMatch = kindUnknown()

// Installed says which operators there are.
func (w *world) Installed(_ context.Context, kind schema.GroupVersionKind) (bool, error) {
	return !w.absent[kind], nil
}

func (w *world) reach(ctx context.Context, name, namespace string) (*place, error) {
	if w.notYet {
		return nil, &target.UnreachableError{Context: name, Err: target.ErrNotYet}
	}
	if w.unreachable {
		return nil, &target.UnreachableError{Context: name, Err: cmp.Or(w.because, errors.New("its API server does not answer"))}
	}
	p := &place{provider: w, refresh: func() {}}
	ns, exists, err := find(ctx, w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil || !exists {
		return p, err
	}
	p.namespace = ns
	_, exists, err = find(ctx, w, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.Deployer}})
	if exists {
		p.deployer = w
	}
	return p, err
}

// converge observes and updates, as the managed reconciler does, until there is nothing left to do.
func (w *world) converge(mg *v1alpha1.Edge) {
	w.t.Helper()
	for range 6 {
		obs, err := w.e.Observe(context.Background(), mg)
		if err != nil {
			w.t.Fatalf("Observe: %v", err)
		}
		if !obs.ResourceExists {
			w.t.Fatal("an Edge that lives does not exist")
		}
		if obs.ResourceUpToDate {
			return
		}
		if _, err := w.e.Update(context.Background(), mg); err != nil {
			w.t.Fatalf("Update: %v", err)
		}
	}
	w.t.Fatalf("it does not come to rest: %v", w.writes)
}

// issue plays cert-manager.
func (w *world) issue(mg *v1alpha1.Edge) {
	w.t.Helper()
	c := w.get(certificateKind, names.EdgeNamespace, "acme-dev")
	c.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "observedGeneration": c.GetGeneration()}}}
	if err := w.Update(context.Background(), c); err != nil {
		w.t.Fatal(err)
	}
	s := issued(mg)
	if err := w.Create(context.Background(), s); err != nil {
		w.t.Fatal(err)
	}
}

func issued(mg *v1alpha1.Edge) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.EdgeNamespace, Name: mg.Spec.ForProvider.CertificateSecret, UID: "secret-1"},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key"), "ca.crt": []byte("authority")},
	}
	kit.Stamp(s, mg.Spec.ForProvider.Identity)
	return s
}

func (w *world) get(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	w.t.Helper()
	u := newObject(kind, namespace, name)
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(u), u); err != nil {
		w.t.Fatal(err)
	}
	return u
}

func (w *world) exists(kind schema.GroupVersionKind, namespace, name string) bool {
	w.t.Helper()
	u := newObject(kind, namespace, name)
	err := w.Get(context.Background(), client.ObjectKeyFromObject(u), u)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *world) change(obj *unstructured.Unstructured, f func(map[string]any)) {
	w.t.Helper()
	f(obj.Object)
	if err := w.Update(context.Background(), obj); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) told() []string {
	var out []string
	for len(w.events.Events) > 0 {
		out = append(out, <-w.events.Events)
	}
	slices.Sort(out)
	return out
}

func edge(change ...func(*v1alpha1.Edge)) *v1alpha1.Edge {
	e := &v1alpha1.Edge{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-dev", UID: "edge-1", Generation: 2, CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))},
		Spec: v1alpha1.EdgeSpec{ForProvider: v1alpha1.EdgeParameters{
			Identity: id, Claim: v1alpha1.ClaimReference{Namespace: "tenant-acme", Name: "dev"},
			Context: "platform", Namespace: "acme-dev",
			Exposure: v1alpha1.Exposure{
				Zone:    "services.example.com",
				Ingress: steading.ContextIngress{Addresses: []string{"203.0.113.7", "2001:db8::7"}, ClassName: "traefik"},
			},
			CertificateSecret: "acme-dev-wildcard-tls",
		}},
	}
	services("mcp")(e)
	for _, c := range change {
		c(e)
	}
	return e
}

func services(of ...string) func(*v1alpha1.Edge) {
	return func(e *v1alpha1.Edge) {
		p := &e.Spec.ForProvider
		p.Services = nil
		for _, s := range of {
			p.Services = append(p.Services, v1alpha1.ExposedService{
				Name: s, Host: names.Host(s, p.Identity.Tenant, p.Identity.Environment, p.Exposure.Zone), Service: names.ServiceOf(p.Identity.Tenant, s),
			})
		}
	}
}

func zone(z string) func(*v1alpha1.Edge) {
	return func(e *v1alpha1.Edge) {
		e.Spec.ForProvider.Exposure.Zone = z
		services("mcp")(e)
	}
}

func gateway(e *v1alpha1.Edge) {
	e.Spec.ForProvider.Exposure.Ingress.ClassName = ""
	e.Spec.ForProvider.Exposure.Ingress.GatewayRef = &steading.GatewayReference{Namespace: "gateways", Name: "public"}
}

func deletedAt(at time.Time) func(*v1alpha1.Edge) {
	return func(e *v1alpha1.Edge) {
		e.DeletionTimestamp, e.Finalizers = &metav1.Time{Time: at}, []string{"finalizer.managedresource.crossplane.io"}
	}
}

// environment is what stands of an environment before its Edge: claim, namespace and deployer, and an operator's issuer.
func environment() []client.Object {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-dev", UID: "ns-1"}}
	kit.Stamp(ns, id)
	return []client.Object{
		ns,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-dev", Name: names.Deployer}},
		&steading.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "dev"}},
		config(),
	}
}

func config() *v1alpha1.ClusterProviderConfig {
	return &v1alpha1.ClusterProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig},
		Spec:       v1alpha1.ProviderConfigSpec{Certificates: &v1alpha1.Certificates{IssuerRef: v1alpha1.IssuerReference{Name: "letsencrypt"}}},
	}
}
