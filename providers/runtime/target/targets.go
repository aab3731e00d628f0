package target

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// Targets are the clusters that environments run on, by context. They are added to the manager, which starts them.
type Targets struct {
	mu          sync.Mutex
	run         context.Context //nolint:containedctx // Of all targets, which outlive who adds them. Nil until started.
	started     time.Time
	byContext   map[string]*running
	subscribers []subscriber
	onExcess    []func(context string)
	rest        func(context.Context) // before a target that exceeded is watched again
}

type running struct {
	*Target
	cancel context.CancelFunc
	// anew makes the target as it was to begin with.
	anew func() (*Target, error)
}

// A subscriber is told what happens to the objects of one Go type on every target.
type subscriber struct {
	kind   string
	notify func(context string, obj client.Object)
}

// New returns no targets yet.
func New() *Targets { return &Targets{byContext: map[string]*running{}, rest: pause} }

// Add makes a cluster known under the name of a context, instead of the one that was known under it, if any.
func (t *Targets) Add(name string, kind Kind, cfg *rest.Config) error {
	anew := func() (*Target, error) { return newTarget(name, kind, cfg, t.dispatch) }
	tg, err := anew()
	if err != nil {
		return fmt.Errorf("cannot set up the cluster of context %s: %w", name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop(name)
	r := &running{Target: tg, anew: anew}
	t.byContext[name] = r
	if t.run != nil {
		t.start(r)
	}
	return nil
}

// Remove forgets the cluster of a context.
func (t *Targets) Remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop(name)
	delete(t.byContext, name)
}

// Get returns the cluster of a context once what is watched there was read once. It waits no longer than ctx.
func (t *Targets) Get(ctx context.Context, name string) (*Target, error) {
	t.mu.Lock()
	r, ok := t.byContext[name]
	t.mu.Unlock()
	if !ok {
		return nil, &UnreachableError{Context: name, Err: t.unknown()}
	}
	return r.Target, r.synced(ctx)
}

// Explain why the cluster of a context is not reached, so that all who use it say the same as who proves its credential. Nil: it
// is reached.
func (t *Targets) Explain(name string, why Cause) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.byContext[name]
	switch {
	case !ok:
	case why == nil:
		r.breaker.cause.Store(nil)
	default:
		r.breaker.cause.Store(&why)
	}
}

// registering is how long after its start a provider may take to look at all Contexts.
const registering = 30 * time.Second

// unknown is why a context has no cluster here.
func (t *Targets) unknown() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run == nil || time.Since(t.started) < registering {
		return ErrNotYet
	}
	return errUnknownContext
}

// Start runs the targets' watches until ctx is done. Only the leader watches.
func (t *Targets) Start(ctx context.Context) error {
	t.mu.Lock()
	t.run, t.started = ctx, time.Now()
	for _, r := range t.byContext {
		t.start(r) //nolint:contextcheck // It has this one.
	}
	t.mu.Unlock()
	<-ctx.Done()
	return nil
}

// NeedLeaderElection is true: who does not reconcile need not watch.
func (t *Targets) NeedLeaderElection() bool { return true }

func (t *Targets) start(r *running) {
	ctx, cancel := context.WithCancel(t.run)
	r.cancel = cancel
	go t.watch(ctx, r)
}

// resting is how long a cluster is left alone that exceeded what it may make the provider hold.
const resting = 5 * time.Minute

// watch a target until ctx is done. One that exceeds what it may make the provider hold is forgotten with all that is held of it, and
// watched again after a rest.
func (t *Targets) watch(ctx context.Context, r *running) {
	for t.round(ctx, r); ctx.Err() == nil; t.round(ctx, r) {
		if r = t.replace(r); r == nil {
			return
		}
		t.tell(r.Name)
		t.rest(ctx)
	}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(resting):
	}
}

// round of watching a target, until ctx is done or it exceeds. What it exceeded before is forgotten once all was read.
func (t *Targets) round(ctx context.Context, r *running) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if before := r.excess.Load(); before != nil {
		go func() {
			if r.informers.WaitForCacheSync(ctx) && r.excess.CompareAndSwap(before, nil) {
				t.tell(r.Name)
			}
		}()
	}
	r.watch(ctx)
}

// replace a target that exceeded by the same anew, unless it is another's place by now.
func (t *Targets) replace(r *running) *running {
	tg, err := r.anew()
	if err != nil {
		return nil // It is made of what the last was made of.
	}
	tg.excess.Store(r.excess.Load())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byContext[r.Name] != r {
		return nil
	}
	tg.breaker.cause.Store(r.breaker.cause.Load())
	n := &running{Target: tg, cancel: r.cancel, anew: r.anew}
	t.byContext[r.Name] = n
	return n
}

// Excess is what the cluster of a context exceeded when it was watched last. Nil: nothing.
func (t *Targets) Excess(name string) *ExcessError {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, ok := t.byContext[name]; ok {
		return r.excess.Load()
	}
	return nil
}

// OnExcess has f told whenever what [Targets.Excess] says of a context changes.
func (t *Targets) OnExcess(f func(context string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.onExcess = append(t.onExcess, f)
}

func (t *Targets) tell(name string) {
	t.mu.Lock()
	told := t.onExcess
	t.mu.Unlock()
	for _, f := range told {
		f(name)
	}
}

func (t *Targets) stop(name string) {
	if r, ok := t.byContext[name]; ok && r.cancel != nil {
		r.cancel()
	}
}

// settling is how long events of a target are gathered before they wake a controller. What comes up does so in a dozen of them,
// a few milliseconds apart, and each would be looked at by itself.
const settling = 50 * time.Millisecond

// Subscribe returns a source that wakes what mapped returns whenever an object of the Go type of kind is added, changed or
// deleted on any target. Of kinds other than Namespace only those objects are watched that carry an environment's label.
func (t *Targets) Subscribe(kind client.Object, mapped func(context string, obj client.Object) []reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.subscribers = append(t.subscribers, subscriber{kind: typeName(kind), notify: func(name string, obj client.Object) {
			for _, r := range mapped(name, obj) {
				queue.AddAfter(r, settling)
			}
		}})
		return nil
	})
}

func (t *Targets) dispatch(name string, obj client.Object) {
	t.mu.Lock()
	subscribers := t.subscribers
	t.mu.Unlock()
	for _, s := range subscribers {
		if s.kind == typeName(obj) {
			s.notify(name, obj)
		}
	}
}

// typeName tells kinds apart: by Go type, or by name where only metadata is watched.
func typeName(obj client.Object) string {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return m.GroupVersionKind().String()
	}
	return fmt.Sprintf("%T", obj)
}

// NameOf is the name under which the cluster of a tenant's context is known. The platform's own is known to all tenants by
// its reserved name, which no tenant's context can have: a tenant's name has no hyphen, and every other name has one.
func NameOf(tenant, context string) string {
	if context == steading.PlatformContext {
		return context
	}
	return names.Context(tenant, context)
}
