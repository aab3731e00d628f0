package home

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// atOnce is the shortest time after which a Home is looked at again.
const atOnce = time.Millisecond

// Outside are kinds that a Home makes, for the manager's cache, of which what is in tenants' namespaces for an environment is
// cached too: the rights to read what it refers to.
func Outside() []client.Object { return []client.Object{&rbacv1.RoleBinding{}} }

// OfTenants are the other kinds that a Home makes.
func OfTenants() []client.Object {
	return []client.Object{&corev1.Namespace{}, &corev1.ResourceQuota{}, &rbacv1.Role{}, &networkingv1.NetworkPolicy{}}
}

// youngers of a Home are all managed resources of its tenant.
func youngers() []client.Object {
	return []client.Object{&v1alpha1.Placement{}, &v1alpha1.Boundary{}, &v1alpha1.Release{}, &v1alpha1.Edge{}, &v1alpha1.Cluster{}}
}

var youngerKinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind(v1alpha1.PlacementKind),
	v1alpha1.GroupVersion.WithKind(v1alpha1.BoundaryKind),
	v1alpha1.GroupVersion.WithKind(v1alpha1.ReleaseKind),
	v1alpha1.GroupVersion.WithKind(v1alpha1.EdgeKind),
	v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterKind),
}

// Setup adds the controller of Homes to the manager.
func Setup(mgr manager.Manager, o kit.Options) error {
	m, err := metadata.NewForConfig(mgr.GetConfig())
	if err != nil {
		return errors.Wrap(err, "cannot make a client that names what is left in namespaces")
	}
	c := &connector{
		client:   mgr.GetClient(),
		reader:   mgr.GetAPIReader(),
		claims:   o.Claims,
		youngers: kit.Youngers{Reader: mgr.GetAPIReader(), Kinds: youngerKinds, ByClaim: true},
		backoff:  o.Deletion,
		clock:    o.Clock,
		metadata: m,
		mapper:   mgr.GetRESTMapper(),
	}
	b := kit.WatchTenantClaims(kit.Watch(mgr, &v1alpha1.Home{}, v1alpha1.HomeKind, o))
	for _, obj := range slices.Concat(Outside(), OfTenants()) {
		b = b.Watches(obj, kit.EnqueueTenant(), builder.WithPredicates(ofTenant(), predicate.Or(kit.Drifted(), startsToCount())))
	}
	for _, obj := range youngers() {
		b = b.Watches(obj, kit.EnqueueTenant(), builder.WithPredicates(kit.Gone()))
	}
	b = b.WatchesMetadata(&steading.RunnerPool{}, enqueueTenantOfClaim(), builder.WithPredicates(kit.Gone()))
	r := kit.Reconciler(mgr, v1alpha1.GroupVersion.WithKind(v1alpha1.HomeKind), o, claimOf, c)
	return errors.Wrap(b.Complete(r), "cannot set up the controller of homes")
}

// ofTenant passes what belongs to a tenant as a whole, not to one of its environments.
func ofTenant() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		_, environment := o.GetLabels()[names.LabelEnvironment]
		return !environment
	})
}

// startsToCount passes the moment from which a tenant's quota counts its environments.
func startsToCount() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.ResourceQuota)
			if !ok {
				return false
			}
			now, ok := e.ObjectNew.(*corev1.ResourceQuota)
			return ok && counts(now) && !counts(before)
		},
	}
}

// enqueueTenantOfClaim wakes the Home of the tenant in whose namespace a claim is.
func enqueueTenantOfClaim() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		tenant, ok := names.TenantOf(o.GetNamespace())
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: names.SystemNamespace, Name: names.Home(tenant)}}}
	})
}

// claimOf a Home.
func claimOf(h *v1alpha1.Home) kit.Claim { return kit.TenantClaim(h.Spec.ForProvider.Claim) }
