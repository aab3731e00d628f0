package boundary

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	crossplane "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// Setup adds the controller of Boundaries. Targets are added to the manager by the caller.
func Setup(mgr ctrl.Manager, o kit.Options, targets *target.Targets) error {
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.BoundaryKind)
	c := &connector{
		o:       o,
		system:  mgr.GetAPIReader(),
		targets: targets,
		tracker: kit.NewTracker(mgr.GetClient(), &v1alpha1.ProviderConfigUsage{}),
	}
	b := kit.WatchEnvironmentClaims(kit.Watch(mgr, &v1alpha1.Boundary{}, v1alpha1.BoundaryKind, o)).
		Watches(&v1alpha1.Release{}, kit.EnqueueEnvironment(), builder.WithPredicates(kit.Gone()))
	for _, made := range []client.Object{
		&corev1.Namespace{}, &corev1.ResourceQuota{}, &corev1.LimitRange{}, &corev1.ServiceAccount{},
		&networkingv1.NetworkPolicy{}, &rbacv1.RoleBinding{},
	} {
		b = b.WatchesRawSource(targets.Subscribe(made, boundaryOf))
	}
	return errors.Wrap(b.Complete(kit.Reconciler(mgr, kind, o, claimOf, c)), "cannot set up the controller of boundaries")
}

// boundaryOf is the Boundary whose namespace an object is, or is in: they have the same name.
func boundaryOf(_ string, obj client.Object) []reconcile.Request {
	name := obj.GetNamespace()
	if name == "" {
		name = obj.GetName()
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: names.SystemNamespace, Name: name}}}
}

type connector struct {
	o       kit.Options
	system  client.Reader
	targets *target.Targets
	tracker resource.ModernTracker
}

// Connect reaches the cluster of the Boundary's context. While it is being deleted, not reaching it is the external
// client's to tell.
func (c *connector) Connect(ctx context.Context, mg *v1alpha1.Boundary) (managed.TypedExternalClient[*v1alpha1.Boundary], error) {
	if err := c.tracker.Track(ctx, mg); err != nil {
		return nil, errors.Wrap(err, "cannot record that the provider config is in use")
	}
	e := &external{o: c.o, system: c.system, youngers: kit.Youngers{
		Reader: c.system,
		Kinds:  []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind(v1alpha1.ReleaseKind)},
	}}
	t, err := c.targets.Get(ctx, target.NameOf(mg.Spec.ForProvider.Identity.Tenant, mg.Spec.ForProvider.Context))
	if err != nil {
		if crossplane.WasDeleted(mg) {
			return unreached{e, err}, nil
		}
		return nil, err
	}
	e.client, e.cache, e.metadata, e.mapper = t.Client, t.Cache, t.Metadata, t.Mapper
	return e, nil
}

// unreached is the cluster of a Boundary that is being deleted and cannot be reached.
type unreached struct {
	*external
	err error
}

// Observe says that nothing is known.
func (u unreached) Observe(ctx context.Context, mg *v1alpha1.Boundary) (managed.ExternalObservation, error) {
	return u.unreachable(ctx, mg, u.err)
}

// claimOf a Boundary.
func claimOf(mg *v1alpha1.Boundary) kit.Claim { return kit.EnvironmentClaim(mg.Spec.ForProvider.Claim) }
