package pool

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/forgejo/server"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/internal/referred"
)

// name of the controller.
const name = "pool"

// Options of the controller.
type Options struct {
	kit.Options
	// Servers that pools watch. They are added to the manager by whoever makes them.
	Servers *server.Servers
	// Guard of the job namespaces.
	Guard Guard
	// Check what runners are made of.
	Check CheckFunc
	// Try what runners are made of.
	Try TryFunc
	// Kinds that they are made of and that not every cluster has.
	Kinds Kinds
}

// Setup adds the controller of Runners to the manager.
func Setup(mgr manager.Manager, o Options) error {
	watcher, err := metadata.NewForConfig(mgr.GetConfig())
	if err != nil {
		return errors.Wrap(err, "cannot make a client that watches tokens")
	}
	if err := metrics.Registry.Register(o.Servers); err != nil {
		return errors.Wrap(err, "cannot register the age of looks")
	}
	woken := make(chan event.GenericEvent, 64)
	pools := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), o)
	told := referred.NewWatches(watcher, func(runner string) {
		key := client.ObjectKey{Namespace: names.SystemNamespace, Name: runner}
		pools.memories.of(key).token.Store(true)
		woken <- event.GenericEvent{Object: runnerNamed(key)}
	})
	pools.informed = told
	if err := mgr.Add(told); err != nil {
		return errors.Wrap(err, "cannot add the watches of tokens to the manager")
	}
	r := o.Held(forgejov1.RunnerKind, mgr.GetClient(), kit.Itself(mgr, forgejov1.GroupVersion.WithKind(forgejov1.RunnerKind), claimOf), pools)
	err = ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.Controller()).
		For(&forgejov1.Runner{}, builder.WithPredicates(resource.DesiredStateChanged())).
		Watches(&forgejov1.RunnerInstance{}, handler.EnqueueRequestsFromMapFunc(poolOf), builder.WithPredicates(concernsPool())).
		Watches(&forgejov1.ClusterProviderConfig{}, enqueueAll(mgr.GetClient()), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Namespace{}, enqueueOfNamespace(mgr.GetClient()), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesMetadata(definition(""), enqueueLacking(mgr.GetClient(), o.Kinds)).
		WatchesRawSource(source.Channel(woken, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(o.Servers.Pools()).
		WatchesRawSource(o.Released(forgejov1.RunnerKind)).
		Complete(ratelimiter.NewReconciler(name, r, o.Limiter))
	return errors.Wrap(err, "cannot set up the controller of runner pools")
}

func newReconciler(c client.Client, uncached client.Reader, o Options) *Reconciler {
	return &Reconciler{
		client: c, uncached: uncached, log: o.Log.WithValues("controller", name), clock: o.Clock, poll: o.Poll, report: o.Claims,
		rights:  referred.Rights{Provider: names.ProviderForgejo, Client: c, Reader: uncached, Uncached: uncached, Claims: o.Claims},
		servers: o.Servers, guard: o.Guard, check: o.Check, try: o.Try, kinds: o.Kinds, claims: NewClaims(), memories: newMemories(),
	}
}

func runnerNamed(key client.ObjectKey) *forgejov1.Runner {
	r := &forgejov1.Runner{}
	r.Namespace, r.Name = key.Namespace, key.Name
	return r
}

// poolOf an instance.
func poolOf(_ context.Context, o client.Object) []reconcile.Request {
	pool := o.GetLabels()[names.LabelPool]
	if pool == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: pool}}}
}

// concernsPool passes what changes the numbers of a pool: a runner that comes or goes, is registered, has a job, or is judged.
func concernsPool() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // The pool made it.
		UpdateFunc: func(e event.UpdateEvent) bool {
			a, ok := e.ObjectOld.(*forgejov1.RunnerInstance)
			b, isToo := e.ObjectNew.(*forgejov1.RunnerInstance)
			if !ok || !isToo {
				return false
			}
			x, y := a.Status.AtProvider, b.Status.AtProvider
			return x.Phase != y.Phase || x.State != y.State || x.Released != y.Released || (x.Child == nil) != (y.Child == nil) ||
				!equality.Semantic.DeepEqual(x.Registration, y.Registration) || (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil)
		},
	}
}

// enqueueAll pools, as when the operator names another image.
func enqueueAll(c client.Reader) handler.EventHandler {
	return enqueue(c, func(*forgejov1.Runner, client.Object) bool { return true })
}

// enqueueOfNamespace enqueues the pools whose runners run in a namespace.
func enqueueOfNamespace(c client.Reader) handler.EventHandler {
	return enqueue(c, func(r *forgejov1.Runner, o client.Object) bool {
		return r.Spec.ForProvider.Settings.JobNamespace == o.GetName()
	})
}

func enqueue(c client.Reader, concerns func(*forgejov1.Runner, client.Object) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		l := &forgejov1.RunnerList{}
		if err := c.List(ctx, l, client.InNamespace(names.SystemNamespace)); err != nil {
			return nil
		}
		var reqs []reconcile.Request
		for i := range l.Items {
			if concerns(&l.Items[i], o) {
				reqs = append(reqs, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
			}
		}
		return reqs
	})
}
