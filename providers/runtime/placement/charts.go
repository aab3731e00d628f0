package placement

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/floor"
)

// A ChartSource is where the chart of environments comes from, with what it takes to read it.
type ChartSource struct {
	v1alpha1.ChartSource
	// PullSecret in steading-system that can read the registry. Empty: anonymous.
	PullSecret string
	// Insecure is the host that is spoken to by plain HTTP, if it is the repository's.
	Insecure string
	// Pinned is the digest that the version was resolved to before. Empty: the registry is asked for it.
	Pinned string
	// Values that a component's chart is rendered with, as JSON. Empty: it is the runtime's chart.
	Values string
}

// A ResolvedChart is pinned by digest.
type ResolvedChart struct {
	// Digest of the chart's manifest.
	Digest string
	// Floor is the least that the chart can run with, DockerFloor the same with the docker sidecar.
	Floor, DockerFloor steading.Resources
	// Needs of a component's chart. NeedsProblem says why they cannot be told.
	Needs        floor.Needs
	NeedsProblem string
}

// Charts know the digest of a chart's version, and what it needs.
type Charts interface {
	// Resolve returns the chart at once, or why it is not known: [ErrAsking] while it is being asked for the first time.
	// When that changes, the tenant is woken.
	Resolve(tenant string, source ChartSource) (ResolvedChart, error)
}

// ErrAsking says that the registry is being asked for a chart.
var ErrAsking = errors.New("the registry is being asked for the chart")

// An AbsentError says that a registry was asked, and does not have the chart at that version.
type AbsentError struct{ Err error }

// Error is the registry's.
func (e *AbsentError) Error() string { return e.Err.Error() }

// Unwrap gives the registry's.
func (e *AbsentError) Unwrap() error { return e.Err }

// ResolveFunc asks a registry for a chart's version, for a tenant that waits for it. Nobody does where the tenant is empty.
type ResolveFunc func(ctx context.Context, tenant string, source ChartSource) (ResolvedChart, error)

// Times of the resolver.
const (
	// chartAge is how long an answer is used before the registry is asked again, in the background.
	chartAge = 10 * time.Minute
	// firstChartRetry and lastChartRetry bound the wait between two questions to a registry that did not answer.
	firstChartRetry = time.Second
	lastChartRetry  = 2 * time.Minute
	// chartTimeout bounds one question.
	chartTimeout = time.Minute
	// chartIdle is how long a chart is kept that no tenant asked for: longer than tenants poll.
	chartIdle = 3 * time.Hour
	// componentIdle is the same for a component's. It is asked for only while it is decided on, and there is one for all
	// values that a tenant tries.
	componentIdle = 15 * time.Minute
	// questions at a time. A tenant may have half of them, so that nobody waits for a chart that is slow on purpose.
	questions         = 8
	questionsOfTenant = questions / 2
)

// A Resolver is the Charts that asks registries, a few questions at a time and in the background, so that admission never
// waits for the network, nor for a chart that is rendered. It is a manager.Runnable.
type Resolver struct {
	ask   ResolveFunc
	wake  func(tenant string)
	clock clock.WithTicker
	queue workqueue.TypedRateLimitingInterface[ChartSource]

	mu      sync.Mutex
	answers map[ChartSource]*answer
	// asking is how many questions are asked for a tenant, and put are those that wait for others of it.
	asking map[string]int
	put    map[string][]ChartSource
}

// answer of a registry, and the tenants that wait for it.
type answer struct {
	chart   ResolvedChart // no digest: err says why not
	err     error
	at      time.Time
	asked   time.Time
	waiting []string
}

// NewResolver returns a resolver that asks with ask and wakes tenants with wake.
func NewResolver(ask ResolveFunc, wake func(tenant string), c clock.WithTicker) *Resolver {
	retries := workqueue.NewTypedItemExponentialFailureRateLimiter[ChartSource](firstChartRetry, lastChartRetry)
	return &Resolver{
		ask:     ask,
		wake:    wake,
		clock:   c,
		queue:   workqueue.NewTypedRateLimitingQueueWithConfig(retries, workqueue.TypedRateLimitingQueueConfig[ChartSource]{Clock: c}),
		answers: map[ChartSource]*answer{},
		asking:  map[string]int{},
		put:     map[string][]ChartSource{},
	}
}

// Resolve returns what is known of the chart.
func (r *Resolver) Resolve(tenant string, source ChartSource) (ResolvedChart, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.answers[source]
	if a == nil {
		r.sweep()
		a = &answer{err: ErrAsking}
		r.answers[source] = a
		r.queue.Add(source)
	}
	a.asked = r.clock.Now()
	if a.chart.Digest == "" {
		if !slices.Contains(a.waiting, tenant) {
			a.waiting = append(a.waiting, tenant)
		}
		return ResolvedChart{}, a.err
	}
	if r.clock.Since(a.at) > chartAge {
		r.queue.Add(source)
	}
	return a.chart, nil
}

// Start asks until the context is done.
func (r *Resolver) Start(ctx context.Context) error {
	go func() {
		<-ctx.Done()
		r.queue.ShutDown()
	}()
	var all sync.WaitGroup
	for range questions {
		all.Go(func() {
			for r.next(ctx) {
			}
		})
	}
	all.Wait()
	return nil
}

func (r *Resolver) next(ctx context.Context) bool {
	source, down := r.queue.Get()
	if down {
		return false
	}
	defer r.queue.Done(source)
	if r.idle(source) {
		r.queue.Forget(source)
		return true
	}
	tenant, ok := r.begin(source)
	if !ok {
		return true
	}
	defer r.end(tenant)
	asked, cancel := context.WithTimeout(ctx, chartTimeout)
	chart, err := r.ask(asked, tenant, source)
	cancel()
	for _, tenant := range r.learn(source, chart, err) {
		r.wake(tenant)
	}
	if err != nil {
		r.queue.AddRateLimited(source)
		return true
	}
	r.queue.Forget(source)
	return true
}

// begin to ask for the tenant that has waited longest, unless it has its share of questions: then its question is put off
// until another of them has been answered.
func (r *Resolver) begin(source ChartSource) (tenant string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.answers[source]; a != nil && len(a.waiting) > 0 {
		tenant = a.waiting[0]
	}
	if r.asking[tenant] >= questionsOfTenant {
		r.put[tenant] = append(r.put[tenant], source)
		return tenant, false
	}
	r.asking[tenant]++
	return tenant, true
}

func (r *Resolver) end(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asking[tenant]--; r.asking[tenant] == 0 {
		delete(r.asking, tenant)
	}
	for _, source := range r.put[tenant] {
		r.queue.Add(source)
	}
	delete(r.put, tenant)
}

// idle forgets a chart that no tenant wants any more, as after the operator named another.
func (r *Resolver) idle(source ChartSource) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.unwanted(source) {
		return false
	}
	delete(r.answers, source)
	return true
}

// unwanted reports whether nobody has asked for a chart for long. One that was forgotten is.
func (r *Resolver) unwanted(source ChartSource) bool {
	a, ok := r.answers[source]
	idle := chartIdle
	if source.Values != "" {
		idle = componentIdle
	}
	return !ok || r.clock.Since(a.asked) > idle
}

// sweep forgets the charts that were answered and that nobody wants any more.
func (r *Resolver) sweep() {
	for source, a := range r.answers {
		if a.chart.Digest != "" && r.unwanted(source) {
			delete(r.answers, source)
		}
	}
}

// learn keeps an answer and returns the tenants to wake. A registry that fails after it answered changes nothing.
func (r *Resolver) learn(source ChartSource, chart ResolvedChart, err error) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.answers[source]
	if !ok {
		return nil
	}
	if err != nil && a.chart.Digest != "" {
		return nil
	}
	if err != nil {
		changed := err.Error() != a.err.Error()
		a.err = err
		if !changed {
			return nil
		}
		return slices.Clone(a.waiting)
	}
	woken := a.waiting
	*a = answer{chart: chart, at: r.clock.Now(), asked: a.asked}
	return woken
}
