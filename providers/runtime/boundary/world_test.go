package boundary

import (
	"context"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

var (
	id    = v1alpha1.Identity{Tenant: "acme", Environment: "dev", UID: "uid-new"}
	now   = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	early = metav1.NewTime(now.Add(-time.Second))
)

// A world is a control plane and a target, which are one here.
type world struct {
	t *testing.T
	client.WithWatch
	e      *external
	clock  *clocktesting.FakeClock
	events *record.FakeRecorder
	calls  []string
	// uncounted quotas stay so.
	uncounted bool
}

// count the quota, as its controller does.
func (w *world) count(ctx context.Context, c client.Client) error {
	q := &corev1.ResourceQuota{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "acme-dev", Name: names.Quota}, q); err != nil {
		return client.IgnoreNotFound(err)
	}
	q.Status.Hard = q.Spec.Hard
	return c.Status().Update(ctx, q)
}

func newWorld(t *testing.T, metadata []runtime.Object, objs ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, steading.AddToScheme, v1alpha1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, clock: clocktesting.NewFakeClock(now), events: record.NewFakeRecorder(16)}
	w.WithWatch = clientfake.NewClientBuilder().WithScheme(s).WithObjects(objs...).
		WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithStatusSubresource(&steading.Environment{}, &corev1.ResourceQuota{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				w.calls = append(w.calls, "delete "+obj.GetName())
				return c.Delete(ctx, obj, opts...)
			},
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				w.calls = append(w.calls, "create "+obj.GetName())
				return c.Create(ctx, obj, opts...)
			},
			Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				if named, ok := obj.(interface{ GetName() string }); ok {
					w.calls = append(w.calls, "apply "+named.GetName())
				}
				if err := c.Apply(ctx, obj, opts...); err != nil || w.uncounted {
					return err
				}
				return w.count(ctx, c)
			},
		}).Build()
	ms := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(ms); err != nil {
		t.Fatal(err)
	}
	w.e = &external{
		o: kit.Options{
			Clock: w.clock, Poll: kit.Poll{Ready: time.Hour, NotReady: time.Hour},
			Claims: kit.NewClaimReporter(w, w, w.events), Record: event.NewNopRecorder(),
		},
		system:   w,
		youngers: kit.Youngers{Reader: w, Kinds: []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind(v1alpha1.ReleaseKind)}},
		client:   w, cache: w,
		metadata: fake.NewSimpleMetadataClient(ms, metadata...), mapper: versions{},
	}
	return w
}

// versions knows every resource as v1.
type versions struct{}

func (versions) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	r.Version = "v1"
	return r, nil
}

func boundary(change ...func(*v1alpha1.Boundary)) *v1alpha1.Boundary {
	b := &v1alpha1.Boundary{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-dev", Generation: 3},
		Spec: v1alpha1.BoundarySpec{ForProvider: v1alpha1.BoundaryParameters{
			Identity: id, Claim: v1alpha1.ClaimReference{Namespace: "tenant-acme", Name: "dev"}, Context: "platform", Namespace: "acme-dev",
			Caps:   steading.Resources{CPU: resource.MustParse("8"), Memory: resource.MustParse("20480Mi"), Storage: resource.MustParse("40Gi")},
			Owners: []steading.Subject{{Kind: "Group", Name: "acme-admins"}},
		}},
	}
	for _, c := range change {
		c(b)
	}
	return b
}

func deleted(b *v1alpha1.Boundary) { b.DeletionTimestamp = &early }

func claim(change ...func(*steading.Environment)) *steading.Environment {
	c := &steading.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "dev"}}
	for _, f := range change {
		f(c)
	}
	return c
}

func claimDeleted(c *steading.Environment) {
	c.DeletionTimestamp, c.Finalizers = &early, []string{"finalizer.apiextensions.crossplane.io"}
}

// standing is the namespace as a Boundary makes it.
func standing(change ...func(*corev1.Namespace)) *corev1.Namespace {
	ns := namespace(boundary().Spec.ForProvider)
	ns.UID = "ns-1"
	for _, c := range change {
		c(ns)
	}
	return ns
}

func terminating(conditions ...corev1.NamespaceCondition) func(*corev1.Namespace) {
	return func(ns *corev1.Namespace) {
		ns.DeletionTimestamp, ns.Finalizers = &early, []string{"foregroundDeletion"}
		ns.Status.Phase, ns.Status.Conditions = corev1.NamespaceTerminating, conditions
	}
}
