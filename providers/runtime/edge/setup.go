package edge

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// Setup adds the controllers of Edges and of their remainders. Targets are added to the manager by the caller.
func Setup(mgr manager.Manager, o kit.Options, targets *target.Targets) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Edge{}, hostIndex, hostsOf); err != nil {
		return errors.Wrap(err, "cannot index edges by their hosts")
	}
	ops, err := newOperators(mgr, o)
	if err != nil {
		return err
	}
	if err := setupEdges(mgr, o, targets, ops); err != nil {
		return errors.Wrap(err, "cannot set up the controller of edges")
	}
	return errors.Wrap(setupRemainders(mgr, o, targets, ops), "cannot set up the controller of edges' remainders")
}

func setupEdges(mgr manager.Manager, o kit.Options, targets *target.Targets, ops *operators) error {
	c := &connector{
		external: external{o: o, control: mgr.GetClient(), system: mgr.GetAPIReader(), cache: mgr.GetCache(), operators: ops, reach: reachBy(targets)},
		tracker:  kit.NewTracker(mgr.GetClient(), &v1alpha1.ProviderConfigUsage{}),
	}
	w := waker{cache: mgr.GetCache()}
	return kit.WatchEnvironmentClaims(kit.Watch(mgr, &v1alpha1.Edge{}, v1alpha1.EdgeKind, o)).
		Watches(&v1alpha1.Edge{}, handler.EnqueueRequestsFromMapFunc(w.rivals), builder.WithPredicates(hostsChanged())).
		Watches(&v1alpha1.ClusterProviderConfig{}, handler.EnqueueRequestsFromMapFunc(w.all), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(ops.Subscribe(w.operators)).
		WatchesRawSource(targets.Subscribe(&corev1.Namespace{}, w.namespace)).
		WatchesRawSource(targets.Subscribe(&corev1.ServiceAccount{}, w.account)).
		WatchesRawSource(targets.Subscribe(&networkingv1.Ingress{}, w.ingress)).
		WatchesRawSource(targets.Subscribe(target.HTTPRoute(), w.route)).
		Complete(kit.Reconciler(mgr, v1alpha1.GroupVersion.WithKind(v1alpha1.EdgeKind), o, claimOf, c, managed.WithPollIntervalHook(poll(o.Poll))))
}

// poll of an Edge that is not ready: no oftener than once a minute. It waits for others to put something right, which may
// take for ever and is watched, and each look costs both sides.
func poll(p kit.Poll) managed.PollIntervalHook {
	return func(mg resource.Managed, _ time.Duration) time.Duration {
		if kit.IsReady(mg) {
			return p.After(true)
		}
		return max(p.After(false), time.Minute)
	}
}

func setupRemainders(mgr manager.Manager, o kit.Options, targets *target.Targets, ops *operators) error {
	const name = "edgeremainder"
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.EdgeRemainderKind)
	t := &tidier{
		cleaner: cleaner{control: mgr.GetClient(), system: mgr.GetAPIReader(), reach: reachBy(targets)},
		cache:   mgr.GetCache(),
		claims:  o.Claims,
		clock:   o.Clock,
		backoff: o.Deletion,
		log:     o.Log.WithValues("controller", name),
	}
	w := waker{cache: mgr.GetCache()}
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.Controller()).
		For(&v1alpha1.EdgeRemainder{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(ops.Subscribe(w.remaindersOfObject)).
		WatchesRawSource(targets.Subscribe(&corev1.Namespace{}, w.remaindersOfNamespace)).
		WatchesRawSource(o.Released(kind.Kind)).
		Complete(ratelimiter.NewReconciler(name, o.Held(kind.Kind, mgr.GetClient(), kit.NoneConcerned, t), o.Limiter))
}

type connector struct {
	external external
	tracker  resource.ModernTracker
}

// Connect asks nothing of the environment's cluster yet: not reaching it is for the verdicts to tell.
func (c *connector) Connect(ctx context.Context, mg *v1alpha1.Edge) (managed.TypedExternalClient[*v1alpha1.Edge], error) {
	if err := c.tracker.Track(ctx, mg); err != nil {
		return nil, errors.Wrap(err, "cannot record that the provider config is in use")
	}
	e := c.external
	return &e, nil
}

// hostsChanged passes what may make a host free or taken.
func hostsChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*v1alpha1.Edge)
			after, ok2 := e.ObjectNew.(*v1alpha1.Edge)
			return ok1 && ok2 && (!slices.Equal(hostsOf(before), hostsOf(after)) || !slices.Equal(before.Status.AtProvider.Hosts, after.Status.AtProvider.Hosts))
		},
	}
}

// A waker maps what happened to the edges and remainders that it concerns.
type waker struct{ cache client.Reader }

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: names.SystemNamespace, Name: name}}
}

func requests(edges []v1alpha1.Edge) []reconcile.Request {
	out := make([]reconcile.Request, 0, len(edges))
	for i := range edges {
		out = append(out, requestFor(edges[i].Name))
	}
	return out
}

func (w waker) all(ctx context.Context, _ client.Object) []reconcile.Request {
	l := &v1alpha1.EdgeList{}
	if err := w.cache.List(ctx, l, client.InNamespace(names.SystemNamespace)); err != nil {
		return nil
	}
	return requests(l.Items)
}

// rivals of an Edge that has changed.
func (w waker) rivals(ctx context.Context, obj client.Object) []reconcile.Request {
	edges, err := sharing(ctx, w.cache, hostsOf(obj))
	if err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range edges {
		if edges[i].Name != obj.GetName() {
			out = append(out, requestFor(edges[i].Name))
		}
	}
	return out
}

func (w waker) operators(ctx context.Context, obj client.Object) []reconcile.Request {
	if name, ok := environmentOf(obj); ok {
		return []reconcile.Request{requestFor(name)}
	}
	return w.all(ctx, obj)
}

func (w waker) namespace(_ string, obj client.Object) []reconcile.Request {
	return []reconcile.Request{requestFor(obj.GetName())}
}

func (w waker) account(_ string, obj client.Object) []reconcile.Request {
	if obj.GetName() != names.Deployer {
		return nil
	}
	return []reconcile.Request{requestFor(obj.GetNamespace())}
}

func (w waker) route(_ string, obj client.Object) []reconcile.Request {
	return []reconcile.Request{requestFor(obj.GetNamespace())}
}

// ingress wakes the Edge it is of, and those that want its hosts.
func (w waker) ingress(_ string, obj client.Object) []reconcile.Request {
	out := []reconcile.Request{requestFor(obj.GetNamespace())}
	i, ok := obj.(*networkingv1.Ingress)
	if !ok {
		return out
	}
	var hosts []string
	for _, r := range i.Spec.Rules {
		hosts = append(hosts, r.Host)
	}
	edges, err := sharing(context.Background(), w.cache, hosts)
	if err != nil {
		return out
	}
	return append(out, requests(edges)...)
}

func (w waker) remaindersOfObject(ctx context.Context, obj client.Object) []reconcile.Request {
	name, one := environmentOf(obj)
	return w.remaindersOf(ctx, func(r *v1alpha1.EdgeRemainder) bool {
		return !one || names.Environment(r.Spec.Identity.Tenant, r.Spec.Identity.Environment) == name
	})
}

func (w waker) remaindersOfNamespace(_ string, obj client.Object) []reconcile.Request {
	return w.remaindersOf(context.Background(), func(r *v1alpha1.EdgeRemainder) bool { return r.Spec.Namespace == obj.GetName() })
}

func (w waker) remaindersOf(ctx context.Context, which func(*v1alpha1.EdgeRemainder) bool) []reconcile.Request {
	l := &v1alpha1.EdgeRemainderList{}
	if err := w.cache.List(ctx, l, client.InNamespace(names.SystemNamespace)); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range l.Items {
		if which(&l.Items[i]) {
			out = append(out, requestFor(l.Items[i].Name))
		}
	}
	return out
}

// claimOf an Edge.
func claimOf(mg *v1alpha1.Edge) kit.Claim { return kit.EnvironmentClaim(mg.Spec.ForProvider.Claim) }
