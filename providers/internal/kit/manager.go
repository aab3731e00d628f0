package kit

import (
	"math/rand/v2"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/steading-dev/steading/apis/names"
)

// Leases: a provider that dies is replaced within a lease, one that hangs gives up before its lease is taken.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// First and last delay after a failed reconcile. Crossplane's own start at a second, which every write conflict would
// then cost an environment on its way to being ready.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = time.Minute
)

// ManagerOptions is what a provider's manager depends on besides its flags.
type ManagerOptions struct {
	// Name of the provider, which is its lease's and its events' too: provider-runtime.
	Name string
	// Scheme with every kind the provider uses.
	Scheme *runtime.Scheme
	// Outside are kinds that the provider makes on the control plane's own cluster. Only objects that carry Steading's
	// managed-by label are cached; read others with the manager's API reader.
	Outside []client.Object
	// OfTenants are such kinds of which only what is of a tenant as a whole is cached: what is of its environments is read in
	// the cluster that they run on, be it this one, and is not to be in memory twice.
	OfTenants []client.Object
	// CacheSecrets has cached reads of Secrets. The zero value reads them from the API server each time.
	CacheSecrets bool
}

// NewManager makes the manager of a provider: leases of 15 seconds, no managed fields and no Secrets in memory, metrics
// and health served where the flags say.
func NewManager(cfg *rest.Config, f Flags, o ManagerOptions) (manager.Manager, error) {
	cached, err := cacheOptions(o)
	if err != nil {
		return nil, err
	}
	mo := manager.Options{
		Scheme:                        o.Scheme,
		Cache:                         cached,
		Metrics:                       metricsserver.Options{BindAddress: f.MetricsAddress},
		HealthProbeBindAddress:        f.HealthAddress,
		LeaderElection:                f.LeaderElect,
		LeaderElectionID:              o.Name,
		LeaderElectionNamespace:       f.LeaderElectNamespace,
		LeaderElectionResourceLock:    resourcelock.LeasesResourceLock,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr(leaseDuration),
		RenewDeadline:                 ptr(renewDeadline),
		RetryPeriod:                   ptr(retryPeriod),
	}
	if !o.CacheSecrets {
		mo.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}
	}
	cfg = ratelimiter.LimitRESTConfig(cfg, f.MaxReconcileRate)
	if !f.Debug {
		// The API server warns of the names of Crossplane's finalizers, at every write.
		cfg.WarningHandler = rest.NoWarnings{}
	}
	mgr, err := manager.New(cfg, mo)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a controller manager")
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, errors.Wrap(err, "cannot add a health check")
	}
	return mgr, errors.Wrap(mgr.AddReadyzCheck("ping", healthz.Ping), "cannot add a readiness check")
}

func cacheOptions(o ManagerOptions) (cache.Options, error) {
	ours := labels.SelectorFromSet(labels.Set{names.LabelManagedBy: names.ManagedBy})
	by := make(map[client.Object]cache.ByObject, len(o.Outside)+len(o.OfTenants))
	for _, obj := range o.Outside {
		by[obj] = cache.ByObject{Label: ours}
	}
	noEnvironments, err := labels.NewRequirement(names.LabelEnvironment, selection.DoesNotExist, nil)
	if err != nil {
		return cache.Options{}, errors.Wrap(err, "cannot select what is of tenants")
	}
	for _, obj := range o.OfTenants {
		by[obj] = cache.ByObject{Label: ours.Add(*noEnvironments)}
	}
	return cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: by}, nil
}

// Options that every controller of a provider is set up with.
type Options struct {
	// Log to.
	Log logging.Logger
	// Poll says when to look again at what nothing else woke.
	Poll Poll
	// Deletion says when to try again a deletion that is held up.
	Deletion Backoff
	// Limiter of all controllers' reconciles together.
	Limiter ratelimiter.RateLimiter
	// MaxReconciles at a time, for each controller.
	MaxReconciles int
	// Clock that the controllers go by.
	Clock clock.WithTicker
	// Metrics of managed resources.
	Metrics managed.MetricRecorder
	// Claims to report to.
	Claims *ClaimReporter
	// Record events on managed resources with it.
	Record event.Recorder
	// Definitions of what the controllers write. Nil: they are not looked at.
	Definitions *Definitions
}

// NewOptions returns the options that the flags ask for.
func NewOptions(mgr manager.Manager, f Flags, o ManagerOptions, l logging.Logger) Options {
	//nolint:staticcheck // crossplane-runtime's recorder and client-go's correlator, which bounds events, need the old events API.
	rec := mgr.GetEventRecorderFor(o.Name)
	mrs := managed.NewMRMetricRecorder()
	metrics.Registry.MustRegister(mrs)
	return Options{
		Log:           l,
		Poll:          Poll{Ready: f.PollInterval, NotReady: f.PollIntervalNotReady},
		Deletion:      Backoff{First: f.DeletionBackoff, Max: f.MaxDeletionBackoff},
		Limiter:       ratelimiter.NewGlobal(f.MaxReconcileRate),
		MaxReconciles: f.MaxReconciles,
		Clock:         clock.RealClock{},
		Metrics:       mrs,
		Claims:        NewClaimReporter(mgr.GetClient(), mgr.GetAPIReader(), rec),
		Record:        event.NewAPIRecorder(rec),
	}
}

// Controller returns what controller-runtime wants to know.
func (o Options) Controller() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: o.MaxReconciles,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		RecoverPanic:            ptr(true),
	}
}

// Poll says when to look again at what nothing else woke.
type Poll struct {
	// Ready resources, jittered by a tenth.
	Ready time.Duration
	// NotReady resources.
	NotReady time.Duration
}

// After is when to look again.
func (p Poll) After(ready bool) time.Duration {
	if !ready {
		return p.NotReady
	}
	return p.Ready + time.Duration((rand.Float64()-0.5)*0.2*float64(p.Ready)) //nolint:gosec // Jitter is no secret.
}

func (p Poll) hook(mg resource.Managed, _ time.Duration) time.Duration { return p.After(IsReady(mg)) }

func ptr[T any](v T) *T { return &v }
