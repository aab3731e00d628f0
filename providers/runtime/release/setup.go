package release

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	crossplane "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	runtimesource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/internal/referred"
	"github.com/steading-dev/steading/providers/runtime/oci"
	"github.com/steading-dev/steading/providers/runtime/render"
	"github.com/steading-dev/steading/providers/runtime/target"
	"github.com/steading-dev/steading/providers/runtime/usage"
)

// RollbackAfter is how long the rollout of an upgrade may fail before it is rolled back, unless Options say otherwise. A
// registry that hiccups, or a crash while a neighbour starts, is over by then.
const RollbackAfter = time.Minute

// Options of the controller of Releases.
type Options struct {
	kit.Options
	// Targets to deploy to. They are added to the manager by the caller.
	Targets *target.Targets
	// Charts that were pulled. May be shared with who resolves them.
	Charts *oci.ChartCache
	// Render renders charts. May be shared likewise. Nil: a renderer with the default limits.
	Render *render.Renderer
	// RollbackAfter is how long the rollout of an upgrade may fail before it is rolled back. 0: [RollbackAfter].
	RollbackAfter time.Duration
}

// Setup adds the controller of Releases.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.RollbackAfter == 0 {
		o.RollbackAfter = RollbackAfter
	}
	if o.Charts == nil {
		o.Charts = &oci.ChartCache{}
	}
	if o.Render == nil {
		o.Render = render.New(render.Limits{})
	}
	done := make(chan event.GenericEvent, 256)
	ops := newOperations(o.Clock, func(release types.NamespacedName) { done <- releaseEvent(release) })
	if err := mgr.Add(ops); err != nil {
		return errors.Wrap(err, "cannot add Helm's operations to the manager")
	}
	watcher, err := metadata.NewForConfig(mgr.GetConfig())
	if err != nil {
		return errors.Wrap(err, "cannot make a client that watches values")
	}
	watches := referred.NewWatches(watcher, func(name string) {
		done <- releaseEvent(types.NamespacedName{Namespace: names.SystemNamespace, Name: name})
	})
	if err := mgr.Add(watches); err != nil {
		return errors.Wrap(err, "cannot add the watches of values")
	}
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.ReleaseKind)
	c := &connector{
		o: o, operations: ops, client: mgr.GetClient(), system: mgr.GetAPIReader(),
		tracker: kit.NewTracker(mgr.GetClient(), &v1alpha1.ProviderConfigUsage{}),
		values: referredValues{
			reader: mgr.GetAPIReader(), watches: watches, renderer: o.Render,
			rights: referred.Rights{Provider: names.ProviderRuntime, Client: mgr.GetClient(), Reader: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Claims: o.Claims},
		},
	}
	w := waker{cache: mgr.GetClient()}
	b := kit.WatchEnvironmentClaimsFor(kit.Watch(mgr, &v1alpha1.Release{}, v1alpha1.ReleaseKind, o.Options), w.all).
		Watches(&v1alpha1.Edge{}, kit.EnqueueEnvironment(), builder.WithPredicates(kit.Gone())).
		Watches(&v1alpha1.Boundary{}, handler.EnqueueRequestsFromMapFunc(w.boundary), builder.WithPredicates(becameReady())).
		WatchesRawSource(runtimesource.Channel(done, &handler.EnqueueRequestForObject{}))
	for _, seen := range []client.Object{
		&corev1.Namespace{}, &corev1.ServiceAccount{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{},
		&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{},
	} {
		b = b.WatchesRawSource(o.Targets.Subscribe(seen, w.object))
	}
	return errors.Wrap(b.Complete(kit.Reconciler(mgr, kind, o.Options, claimOf, c)), "cannot set up the controller of releases")
}

// becameReady passes the events of a Boundary that may be deployed into from then on.
func becameReady() predicate.Predicate {
	ready := func(o client.Object) bool {
		b, ok := o.(*v1alpha1.Boundary)
		return ok && kit.IsReady(b)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return ready(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return ready(e.ObjectNew) && !ready(e.ObjectOld) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func releaseEvent(release types.NamespacedName) event.GenericEvent {
	return event.GenericEvent{Object: &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: release.Namespace, Name: release.Name}}}
}

// A waker maps what happened on a target to the Releases that it concerns.
type waker struct{ cache client.Reader }

// object wakes the Release that an object is of: the component's whose name it carries, or else the runtime's, which has the
// namespace's name. The namespace and the account that deploys into it concern all.
func (w waker) object(_ string, obj client.Object) []reconcile.Request {
	namespace, l := obj.GetNamespace(), obj.GetLabels()
	_, whole := obj.(*corev1.Namespace)
	if whole {
		namespace = obj.GetName()
	}
	if whole || obj.GetName() == names.Deployer {
		if tenant, environment := l[names.LabelTenant], l[names.LabelEnvironment]; namespace == names.EnvironmentNamespace(tenant, environment) {
			return requests(w.all(context.Background(), tenant, environment)...)
		}
	}
	if component := l[names.LabelComponent]; component != "" {
		return requests(names.ComponentIn(namespace, component))
	}
	return requests(namespace)
}

// boundary wakes all Releases of an environment.
func (w waker) boundary(ctx context.Context, o client.Object) []reconcile.Request {
	l := o.GetLabels()
	return requests(w.all(ctx, l[names.LabelTenant], l[names.LabelEnvironment])...)
}

// all Releases of an environment by name, the runtime's even if it is not known.
func (w waker) all(ctx context.Context, tenant, environment string) []string {
	runtime := names.Environment(tenant, environment)
	found := []string{runtime}
	l := &v1alpha1.ReleaseList{}
	err := w.cache.List(ctx, l, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelTenant: tenant, names.LabelEnvironment: environment})
	if err != nil {
		return found
	}
	for i := range l.Items {
		if l.Items[i].Name != runtime {
			found = append(found, l.Items[i].Name)
		}
	}
	return found
}

func requests(releases ...string) []reconcile.Request {
	out := make([]reconcile.Request, 0, len(releases))
	for _, name := range releases {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: names.SystemNamespace, Name: name}})
	}
	return out
}

type connector struct {
	o          Options
	operations *operations
	client     client.Client
	system     client.Reader
	tracker    resource.ModernTracker
	values     valuesSource
}

// Connect reaches the cluster of the Release's context. While it is being deleted, not reaching it is the external
// client's to tell.
func (c *connector) Connect(ctx context.Context, mg *v1alpha1.Release) (managed.TypedExternalClient[*v1alpha1.Release], error) {
	if err := c.tracker.Track(ctx, mg); err != nil {
		return nil, errors.Wrap(err, "cannot record that the provider config is in use")
	}
	e := &external{
		o: c.o.Options, operations: c.operations, rollbackAfter: c.o.RollbackAfter, system: c.system, boundaries: c.client,
		usage: usage.Log{Client: c.client, Reader: c.system}, values: c.values,
	}
	t, err := c.o.Targets.Get(ctx, target.NameOf(mg.Spec.ForProvider.Identity.Tenant, mg.Spec.ForProvider.Context))
	if err != nil {
		if crossplane.WasDeleted(mg) {
			return unreached{e, err}, nil
		}
		return nil, err
	}
	e.client, e.cache, e.helm = t.Client, t.Cache, helmOn{t, c.o.Render}
	if crossplane.WasDeleted(mg) {
		// Taking it down takes no config, which may be gone.
		return e, nil
	}
	config, err := c.config(ctx, mg)
	if err != nil {
		return nil, err
	}
	e.source = registries{secrets: c.system, config: config, charts: c.o.Charts}
	return e, nil
}

// config that the Release names.
func (c *connector) config(ctx context.Context, mg *v1alpha1.Release) (v1alpha1.ProviderConfigSpec, error) {
	ref := mg.GetProviderConfigReference()
	kind, name := v1alpha1.ClusterProviderConfigKind, names.DefaultProviderConfig
	if ref != nil {
		kind, name = ref.Kind, ref.Name
	}
	if kind == v1alpha1.ProviderConfigKind {
		pc := &v1alpha1.ProviderConfig{}
		err := c.client.Get(ctx, client.ObjectKey{Namespace: mg.Namespace, Name: name}, pc)
		return pc.Spec, errors.Wrapf(err, "cannot read ProviderConfig %s", name)
	}
	pc := &v1alpha1.ClusterProviderConfig{}
	err := c.client.Get(ctx, client.ObjectKey{Name: name}, pc)
	return pc.Spec, errors.Wrapf(err, "cannot read ClusterProviderConfig %s", name)
}

// helmOn is Helm on a target.
type helmOn struct {
	*target.Target
	renderer *render.Renderer
}

func (h helmOn) history(ctx context.Context, p v1alpha1.ReleaseParameters) (history, error) {
	return deployerHistory(ctx, h.Target, p)
}

func (h helmOn) engine(ctx context.Context, p v1alpha1.ReleaseParameters) (*helmEngine, error) {
	return connectHelm(ctx, h.Target, h.renderer, p)
}

func (h helmOn) refusal(ctx context.Context, p v1alpha1.ReleaseParameters, of types.UID, since time.Time) (string, error) {
	return deployerRefusal(ctx, h.Target, p.Namespace, of, since)
}

// unreached is the cluster of a Release that is being deleted and cannot be reached.
type unreached struct {
	*external
	err error
}

// Observe says that nothing is known.
func (u unreached) Observe(ctx context.Context, mg *v1alpha1.Release) (managed.ExternalObservation, error) {
	return u.unreachable(ctx, mg, u.err)
}

// claimOf a Release.
func claimOf(mg *v1alpha1.Release) kit.Claim { return kit.EnvironmentClaim(mg.Spec.ForProvider.Claim) }
