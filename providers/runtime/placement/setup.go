package placement

import (
	"context"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/usage"
)

// name of the controller.
const name = "placement"

// Setup adds the controller of Placements to the manager. Charts are resolved with ask.
func Setup(mgr manager.Manager, o kit.Options, ask ResolveFunc) error {
	wake := make(chan event.GenericEvent, 64)
	resolver := NewResolver(ask, func(tenant string) { wake <- event.GenericEvent{Object: tenantObject(tenant)} }, o.Clock)
	if err := mgr.Add(resolver); err != nil {
		return errors.Wrap(err, "cannot add the resolver of charts")
	}
	c := &census{reader: mgr.GetClient()}
	if err := metrics.Registry.Register(c); err != nil {
		return errors.Wrap(err, "cannot register the count of environments")
	}
	if err := mgr.Add(c); err != nil {
		return errors.Wrap(err, "cannot add the count of environments")
	}
	placements := kit.OfTenant(mgr.GetClient(), func() resource.ManagedList { return &v1alpha1.PlacementList{} }, claim)
	r := o.Held(v1alpha1.PlacementKind, mgr.GetClient(), placements, newReconciler(mgr.GetClient(), mgr.GetAPIReader(), o, resolver))

	tenant := kit.EnqueueTenant()
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.Controller()).
		Watches(&v1alpha1.Placement{}, tenant, builder.WithPredicates(resource.DesiredStateChanged())).
		Watches(&v1alpha1.Home{}, tenant, builder.WithPredicates(predicate.Or(resource.DesiredStateChanged(), standingChanged()))).
		Watches(&v1alpha1.Cluster{}, tenant, builder.WithPredicates(contextChanged())).
		Watches(&v1alpha1.Edge{}, tenant, builder.WithPredicates(kit.Gone())).
		Watches(&v1alpha1.Boundary{}, tenant, builder.WithPredicates(predicate.Or(kit.Gone(), quotaCounted()))).
		Watches(&v1alpha1.Release{}, tenant, builder.WithPredicates(kit.Gone())).
		Watches(&v1alpha1.UsageEvent{}, tenant, builder.WithPredicates(created())).
		Watches(&v1alpha1.ClusterProviderConfig{}, enqueueAllTenants(mgr.GetClient()), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(wake, tenant)).
		WatchesRawSource(o.Released(v1alpha1.PlacementKind)).
		Complete(ratelimiter.NewReconciler(name, r, o.Limiter))
	return errors.Wrap(err, "cannot set up the controller of placements")
}

func newReconciler(c client.Client, uncached client.Reader, o kit.Options, charts Charts) *Reconciler {
	return &Reconciler{
		client:   c,
		reader:   uncached,
		log:      o.Log.WithValues("controller", name),
		clock:    o.Clock,
		poll:     o.Poll,
		charts:   charts,
		floor:    v1alpha1.RuntimeFloor,
		usage:    usage.Log{Client: c, Reader: uncached},
		youngers: kit.Youngers{Reader: uncached, Kinds: younger},
		reports:  newReports(o.Clock),
	}
}

// standingChanged passes a Home whose namespace came to stand, or stands no more.
func standingChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*v1alpha1.Home)
		after, ok2 := e.ObjectNew.(*v1alpha1.Home)
		return ok1 && ok2 && stands(before) != stands(after)
	}}
}

// quotaCounted passes a Boundary whose quota was counted with other caps, or whose use came nearer to them.
func quotaCounted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(*v1alpha1.Boundary)
			after, ok2 := e.ObjectNew.(*v1alpha1.Boundary)
			return ok1 && ok2 && !equality.Semantic.DeepEqual(before.Status.AtProvider.Quota, after.Status.AtProvider.Quota)
		},
	}
}

// created passes what is new, which of immutable objects is all that matters.
func created() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// tenantObject stands for a tenant in an event.
func tenantObject(tenant string) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.LabelTenant: tenant}}}
}

// enqueueAllTenants wakes every tenant that has a Home, as when the operator names another chart.
func enqueueAllTenants(c client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		homes := &v1alpha1.HomeList{}
		if err := c.List(ctx, homes, client.InNamespace(names.SystemNamespace)); err != nil {
			return nil
		}
		reqs := make([]reconcile.Request, 0, len(homes.Items))
		for i := range homes.Items {
			reqs = append(reqs, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: names.SystemNamespace, Name: homes.Items[i].Name}})
		}
		return reqs
	})
}

// claim that a Placement serves.
func claim(p *v1alpha1.Placement) kit.Claim { return kit.EnvironmentClaim(p.Spec.ForProvider.Claim) }

// sourceOf the runtime's chart.
func sourceOf(config *v1alpha1.ClusterProviderConfig) ChartSource {
	return sourceIn(config, config.Spec.RuntimeChart)
}

// sourceIn is where a chart comes from, with what the operator says about its registry.
func sourceIn(config *v1alpha1.ClusterProviderConfig, chart v1alpha1.ChartSource) ChartSource {
	s := ChartSource{ChartSource: chart}
	if ref := config.Spec.PullSecretRef; ref != nil {
		s.PullSecret = ref.Name
	}
	if h := host(s.Repository); slices.Contains(config.Spec.InsecureRegistries, h) {
		s.Insecure = h
	}
	return s
}

// host of a repository, with its port.
func host(repository string) string {
	h, _, _ := strings.Cut(repository, "/")
	return h
}
