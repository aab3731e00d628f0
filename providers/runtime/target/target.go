package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// Kind of a target, as metrics tell them apart.
type Kind string

// Kinds of targets.
const (
	// Platform is the cluster that the control plane runs on.
	Platform Kind = "platform"
	// Context is a registered cluster.
	Context Kind = "context"
)

// Bounds of what a target may cost.
const (
	requestTimeout = 15 * time.Second
	syncTimeout    = 2 * time.Second
	// versionAge is how long a server's version and kinds are believed.
	versionAge = 5 * time.Minute
)

// A Target is one cluster that environments run on.
type Target struct {
	// Name of the context.
	Name string
	// Client acts as the provider, uncached.
	Client client.Client
	// Cache reads what is watched: every Namespace, and of the other kinds what carries an environment's label.
	Cache client.Reader
	// Metadata reads the metadata of any kind, uncached.
	Metadata metadata.Interface
	// Discovery is cached, and refreshed every few minutes while charts are deployed, and when a kind is not known.
	Discovery discovery.CachedDiscoveryInterface
	// Mapper knows the server's kinds.
	Mapper *Mapper

	anonymous *rest.Config // reaches the cluster as nobody, by one transport
	breaker   *breaker
	informers cache.Cache
	dispatch  func(string, client.Object)
	tokens    tokens
	kept      *kept // nil: it is ours, and may have what it has
	// excess is why it is not watched, or was not when that was last tried. Nil: it is.
	excess atomic.Pointer[ExcessError]
	// exceeded ends what watches.
	exceeded chan struct{}
	// watching is whether it is, or was.
	watching atomic.Bool

	mu           sync.Mutex
	capabilities *chartutil.Capabilities
	checked      time.Time
}

func newTarget(name string, kind Kind, cfg *rest.Config, dispatch func(string, client.Object)) (*Target, error) {
	t := &Target{Name: name, breaker: newBreaker(name, kind), dispatch: dispatch, exceeded: make(chan struct{})}
	wrap, watched := t.bounds(kind)
	anonymous, err := anonymously(cfg, wrap)
	if err != nil {
		return nil, err
	}
	t.anonymous = anonymous
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(RefuseRedirects)
	cfg.Wrap(t.breaker.wrap)
	// Fairness between tenants is the API server's. A limiter here would make one tenant's releases wait for another's.
	cfg.QPS, cfg.RateLimiter = -1, nil

	watching := rest.CopyConfig(cfg) // Watches outlive any timeout.
	watching.Wrap(watched)
	cfg.Wrap(wrap)
	cfg.Timeout = requestTimeout

	dc, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	t.Discovery = memory.NewMemCacheClient(dc)
	t.Mapper = newMapper(t.Discovery, clock.RealClock{})
	if t.Client, err = client.New(cfg, client.Options{Scheme: scheme.Scheme, Mapper: t.Mapper}); err != nil {
		return nil, err
	}
	if t.Metadata, err = metadata.NewForConfig(cfg); err != nil {
		return nil, err
	}
	// That a server has no HTTPRoutes makes nobody ask it again. They are watched once somebody wants one and finds the kind.
	mapper, err := newUnasked(t.Mapper.DeferredDiscoveryRESTMapper)
	if err != nil {
		return nil, err
	}
	if t.informers, err = newCache(watching, mapper, t.kept); err != nil {
		return nil, err
	}
	t.Cache = t.informers
	t.tokens = tokens{client: t.Client, byNamespace: map[string]*token{}}
	return t, nil
}

// bounds what the server may make the provider hold, if it is a tenant's: they wrap the transports of requests, and of watches.
func (t *Target) bounds(kind Kind) (requests, watches transport.WrapperFunc) {
	if kind != Context {
		none := func(rt http.RoundTripper) http.RoundTripper { return rt }
		return none, none
	}
	var once sync.Once
	told := func(over *ExcessError) {
		once.Do(func() {
			t.excess.Store(over)
			close(t.exceeded)
		})
	}
	b := &budget{}
	t.kept = newKept(told)
	return b.bound(nil), b.bound(told)
}

// synced waits until what is watched was read once.
func (t *Target) synced(ctx context.Context) error {
	if over := t.excess.Load(); over != nil && !t.watching.Load() {
		return t.breaker.unreachable(over)
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if !t.informers.WaitForCacheSync(ctx) {
		if over := t.excess.Load(); over != nil {
			return t.breaker.unreachable(over)
		}
		return t.breaker.unreachable(errors.New("its API server does not answer"))
	}
	return nil
}

// Capabilities of the server, for charts. They are read again every few minutes, and when a kind was not known, for both its
// version and its kinds change while it runs.
func (t *Target) Capabilities() (*chartutil.Capabilities, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.Mapper.clock.Since(t.checked) >= versionAge
	if t.capabilities != nil && !old && !t.Mapper.since(t.checked) {
		return t.capabilities.Copy(), nil
	}
	version, err := t.Discovery.ServerVersion()
	if err != nil {
		return nil, &UnreachableError{Context: t.Name, Err: err}
	}
	if t.capabilities != nil && old {
		t.Mapper.Reset()
	}
	checked := t.Mapper.clock.Now()
	apis, err := action.GetVersionSet(t.Discovery)
	if err != nil {
		return nil, fmt.Errorf("cannot read what kinds the cluster of context %s knows: %w", t.Name, err)
	}
	t.capabilities = &chartutil.Capabilities{
		APIVersions: apis,
		KubeVersion: chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}
	t.checked = checked
	return t.capabilities.Copy(), nil
}

// Refresh forgets what kinds the server knows, as when one was not found.
func (t *Target) Refresh() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.capabilities = nil
	t.Mapper.Reset()
}

// ErrNotYet says that a Context may not have been looked at since the provider started, so that nothing is known of its cluster.
var ErrNotYet = errors.New("its Context was not looked at yet since the provider started")

var errUnknownContext = errors.New("no such context is registered")

// An UnreachableError says that a target cannot be reached.
type UnreachableError struct {
	// Context by name.
	Context string
	// Err says why.
	Err error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("cannot reach the cluster of context %s: %s", e.Context, e.Err)
}

// Unwrap returns why.
func (e *UnreachableError) Unwrap() error { return e.Err }

// A Cause is why a cluster is not reached where that is known, and has a reason of conditions.
type Cause interface {
	error
	ConditionReason() xpv2.ConditionReason
}

// ReasonOf an error in reaching a target, as a reason of conditions: one at an address that is refused, or that refuses the
// credential or what it is to do, may well answer.
func ReasonOf(err error) xpv2.ConditionReason {
	if refusalIn(err) != nil {
		return steading.ReasonAddressRefused
	}
	if c := Cause(nil); errors.As(err, &c) {
		return c.ConditionReason()
	}
	if kerrors.IsForbidden(err) || kerrors.IsUnauthorized(err) {
		return steading.ReasonCredentialRefused
	}
	return steading.ReasonTargetUnreachable
}
