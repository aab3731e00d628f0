package kit

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ProviderConfigs are the kinds with which a provider is configured, all in one group and version. Both kinds of config
// are accounted for by the one namespaced ProviderConfigUsage. One that is being deleted is kept until no managed resource of
// the provider names it.
type ProviderConfigs struct {
	// GroupVersion of the provider.
	GroupVersion schema.GroupVersion
	// Config, ClusterConfig and Usage are empty objects of the kinds ProviderConfig, ClusterProviderConfig and
	// ProviderConfigUsage.
	Config, ClusterConfig, Usage client.Object
}

// setupProviderConfigs sets up the controllers that keep a provider's configs while they are in use.
func setupProviderConfigs(mgr manager.Manager, o Options, p ProviderConfigs) error {
	for kind, config := range map[string]client.Object{"ProviderConfig": p.Config, "ClusterProviderConfig": p.ClusterConfig} {
		name, of := providerconfig.ControllerName(kind), p.GroupVersion.WithKind(kind)
		keeper := newConfigKeeper(mgr, o, of)
		b := ctrl.NewControllerManagedBy(mgr).
			Named(name).
			WithOptions(o.Controller()).
			For(config).
			Watches(p.Usage, together{&resource.EnqueueRequestForProviderConfig{Kind: kind}}).
			WatchesRawSource(o.Released(kind))
		for _, user := range configuredKinds(mgr.GetScheme(), p.GroupVersion) {
			empty, ok := resource.MustCreateObject(user, mgr.GetScheme()).(client.Object)
			if !ok {
				return errors.Errorf("the kind %s, which names configs, is no object", user.Kind)
			}
			b = b.Watches(empty, keeper.woken(), builder.WithPredicates(keeper.changesOver()))
		}
		if err := b.Complete(ratelimiter.NewReconciler(name, heldConfig(mgr, o, keeper), o.Limiter)); err != nil {
			return errors.Wrapf(err, "cannot set up the controller of %s", kind)
		}
	}
	return nil
}

// newConfigKeeper keeps configs of a kind, and has Crossplane's reconciler account for those that are not being deleted.
func newConfigKeeper(mgr manager.Manager, o Options, config schema.GroupVersionKind) configKeeper {
	gv, frugal := config.GroupVersion(), newFrugalManager(noting{mgr})
	r := providerconfig.NewReconciler(frugal, resource.ProviderConfigKinds{
		Config:    config,
		Usage:     gv.WithKind("ProviderConfigUsage"),
		UsageList: gv.WithKind("ProviderConfigUsageList"),
	}, providerconfig.WithLogger(o.Log.WithValues("controller", providerconfig.ControllerName(config.Kind))), providerconfig.WithRecorder(o.Record))
	return configKeeper{of: config, client: frugal.GetClient(), record: o.Record, then: r}
}

// heldConfig is held as all controllers are.
func heldConfig(mgr manager.Manager, o Options, k configKeeper) reconcile.Reconciler {
	return o.Held(k.of.Kind, mgr.GetClient(), Itself[resource.ProviderConfig](mgr, k.of, nil), WithAfter(k))
}

// accounting is how long usages may come and go before a config's users are counted again: each count looks at all of them.
const accounting = time.Second

// together enqueues what its handler does, later, so that many events are one.
type together struct{ handler.EventHandler }

// Create enqueues later.
func (h together) Create(ctx context.Context, e event.CreateEvent, q laterQueue) {
	h.EventHandler.Create(ctx, e, later{q})
}

// Update enqueues later.
func (h together) Update(ctx context.Context, e event.UpdateEvent, q laterQueue) {
	h.EventHandler.Update(ctx, e, later{q})
}

// Delete enqueues later.
func (h together) Delete(ctx context.Context, e event.DeleteEvent, q laterQueue) {
	h.EventHandler.Delete(ctx, e, later{q})
}

// Generic enqueues later.
func (h together) Generic(ctx context.Context, e event.GenericEvent, q laterQueue) {
	h.EventHandler.Generic(ctx, e, later{q})
}

type laterQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// later is a queue to which everything is added after a while.
type later struct{ laterQueue }

// Add after a while.
func (q later) Add(r reconcile.Request) { q.AddAfter(r, accounting) }

// NewTracker returns the tracker with which a connector says that a managed resource uses its provider config.
//
// A managed resource that is being deleted is not tracked. If it ever used its config, its usage exists; made again, it
// would be refused in a namespace that terminates, where crossplane-runtime 2.4 then never gets as far as deleting
// (crossplane-runtime#1150), and where deletion is in the foreground, the garbage collector, which deletes the usage
// first, would wait for one more each time.
func NewTracker(c client.Client, of resource.TypedProviderConfigUsage) resource.ModernTracker {
	t := resource.NewProviderConfigUsageTracker(c, of)
	return resource.ModernTrackerFn(func(ctx context.Context, mg resource.ModernManaged) error {
		if meta.WasDeleted(mg) {
			return nil
		}
		return t.Track(ctx, mg)
	})
}
