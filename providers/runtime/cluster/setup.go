package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/internal/referred"
	"github.com/steading-dev/steading/providers/runtime/target"
)

const (
	// fieldOwner of what is applied.
	fieldOwner = names.ProviderRuntime
	// atOnce is the shortest time after which a Cluster is looked at again.
	atOnce = time.Millisecond
)

// Setup adds the controller of Clusters to the manager. It makes them known to targets, under the name that [target.NameOf]
// gives them.
func Setup(mgr manager.Manager, o kit.Options, targets *target.Targets) error {
	watcher, err := metadata.NewForConfig(mgr.GetConfig())
	if err != nil {
		return errors.Wrap(err, "cannot make a client that watches credentials")
	}
	held := newLines(usual)
	told := referred.NewWatches(watcher, held.wake)
	for _, r := range []manager.Runnable{held, told} {
		if err := mgr.Add(r); err != nil {
			return errors.Wrap(err, "cannot add the lines to clusters")
		}
	}
	targets.OnExcess(held.wake) // A Cluster is called as its context is among the targets.
	c := &connector{
		o:            o,
		client:       mgr.GetClient(),
		reader:       mgr.GetAPIReader(),
		keeper:       keeper{client: mgr.GetClient(), reader: mgr.GetAPIReader()},
		offers:       offers{reader: mgr.GetAPIReader(), mapper: mgr.GetRESTMapper()},
		lines:        held,
		informed:     told,
		targets:      targets,
		registered:   &registry{keys: map[string]string{}},
		tracker:      kit.NewTracker(mgr.GetClient(), &v1alpha1.ProviderConfigUsage{}),
		controlPlane: mgr.GetConfig().Host,
	}
	b := kit.WatchContextClaims(kit.Watch(mgr, &v1alpha1.Cluster{}, v1alpha1.ClusterKind, o)).
		Watches(&v1alpha1.ClusterProviderConfig{}, enqueueAll(mgr.GetClient()), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(held.source())
	for _, of := range []client.Object{&v1alpha1.Placement{}, &v1alpha1.Boundary{}, &v1alpha1.Release{}, &v1alpha1.Edge{}} {
		b = b.Watches(of, enqueueContextOf(), builder.WithPredicates(kit.Gone()))
	}
	r := kit.Reconciler(mgr, v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterKind), o, claimOf, c)
	return errors.Wrap(b.Complete(r), "cannot set up the controller of clusters")
}

// enqueueAll Clusters, as when the operator allows another address.
func enqueueAll(c client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		l := &v1alpha1.ClusterList{}
		if err := c.List(ctx, l, client.InNamespace(names.SystemNamespace)); err != nil {
			return nil
		}
		reqs := make([]reconcile.Request, 0, len(l.Items))
		for i := range l.Items {
			reqs = append(reqs, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
		}
		return reqs
	})
}

// connector makes an external client for each look at a Cluster.
type connector struct {
	o          kit.Options
	client     client.Client
	reader     client.Reader // uncached
	keeper     keeper
	offers     offers
	lines      *lines
	informed   *referred.Watches
	targets    *target.Targets
	registered *registry
	tracker    resource.ModernTracker
	// controlPlane is the address of its API server.
	controlPlane string
}

// Connect reads which addresses the operator allows.
func (c *connector) Connect(ctx context.Context, mg *v1alpha1.Cluster) (managed.TypedExternalClient[*v1alpha1.Cluster], error) {
	if err := c.tracker.Track(ctx, mg); err != nil {
		return nil, errors.Wrap(err, "cannot record that the provider config is in use")
	}
	policy, err := c.policy(ctx)
	if err != nil {
		return nil, err
	}
	return &external{connector: c, policy: policy}, nil
}

func (c *connector) policy(ctx context.Context) (address.Policy, error) {
	p := address.Policy{What: "context", Setting: "spec.server", AllowedBy: "spec.allowedTargets"}
	config := &v1alpha1.ClusterProviderConfig{}
	err := c.client.Get(ctx, types.NamespacedName{Name: names.DefaultProviderConfig}, config)
	if err != nil && !kerrors.IsNotFound(err) {
		return p, errors.Wrapf(err, "cannot get the ClusterProviderConfig %s", names.DefaultProviderConfig)
	}
	if p.Allowed, err = address.ParseAllowed(p.AllowedBy, config.Spec.AllowedTargets); err != nil {
		return p, err
	}
	p.ControlPlane, err = address.Of(ctx, c.controlPlane)
	return p, err
}

// offerTarget makes the kept endpoint the target of what is placed on the context, when it is not that yet.
func (e *external) offerTarget(mg *v1alpha1.Cluster) error {
	key := e.kept.endpoint.key()
	if !e.registered.changes(mg.Name, key) {
		return nil
	}
	p := mg.Spec.ForProvider
	if err := e.targets.Add(target.NameOf(p.Identity.Tenant, p.Context), target.Context, e.kept.endpoint.Config()); err != nil {
		return err
	}
	e.registered.set(mg.Name, key)
	return nil
}

// registry remembers which endpoint of a Cluster is its target.
type registry struct {
	mu   sync.Mutex
	keys map[string]string
}

func (r *registry) changes(cluster, key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys[cluster] != key
}

func (r *registry) set(cluster, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys[cluster] = key
}

func (r *registry) forget(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, cluster)
}

// claimOf a Cluster.
func claimOf(mg *v1alpha1.Cluster) kit.Claim { return kit.ContextClaim(mg.Spec.ForProvider.Claim) }
