package release

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// Kinds of operations.
const (
	deploying    = "deploy"
	rollingBack  = "rollback"
	uninstalling = "uninstall"
)

// First and longest wait before an operation that failed is tried again. What a chart may not do it still may not later,
// unless something else is looked up, so that is tried rarely.
const (
	firstRetry   = 5 * time.Second
	longestRetry = 5 * time.Minute
	refusedRetry = 10 * time.Minute
)

// Operations are the Helm operations of this process: at most one a release, each in a goroutine of its own. They end
// when the manager, to which they are added, does.
type operations struct {
	clock clock.Clock
	wake  func(types.NamespacedName)
	ctx   context.Context //nolint:containedctx // Of all operations, which outlive the reconcile that begins them.
	end   context.CancelFunc
	wg    sync.WaitGroup

	mu   sync.Mutex
	last map[types.NamespacedName]*operation
}

// An operation is the last one of a release.
type operation struct {
	kind     string
	request  string
	running  bool
	err      error
	attempts int // in a row, with this request
	ended    time.Time
	// image that was chosen, if one was.
	image *steading.ChosenImage
}

func newOperations(c clock.Clock, wake func(types.NamespacedName)) *operations {
	ctx, end := context.WithCancel(context.Background())
	return &operations{clock: c, wake: wake, ctx: ctx, end: end, last: map[types.NamespacedName]*operation{}}
}

// Start ends the operations when the manager ends.
func (o *operations) Start(ctx context.Context) error {
	<-ctx.Done()
	o.end()
	return nil
}

// of returns a copy of the last operation of a release, nil if this process knows none.
func (o *operations) of(release types.NamespacedName) *operation {
	o.mu.Lock()
	defer o.mu.Unlock()
	op, ok := o.last[release]
	if !ok {
		return nil
	}
	c := *op
	return &c
}

// forget a release that is gone.
func (o *operations) forget(release types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if op, ok := o.last[release]; ok && !op.running {
		delete(o.last, release)
	}
}

// begin an operation, unless one is running.
func (o *operations) begin(release types.NamespacedName, kind, request string, run func(context.Context) (*steading.ChosenImage, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.last[release]
	if before != nil && before.running {
		return
	}
	op := &operation{kind: kind, request: request, running: true, attempts: before.attemptsAt(kind, request) + 1}
	o.last[release] = op
	o.wg.Add(1)
	go func() {
		defer o.wg.Done()
		ctx, cancel := context.WithTimeout(o.ctx, operationTimeout)
		defer cancel()
		began := o.clock.Now()
		image, err := run(ctx)
		o.finish(release, op, image, err)
		observe(kind, err, o.clock.Since(began))
		o.wake(release)
	}()
}

// fail notes that an operation failed before it could begin, and returns a copy of it. Until it is to be tried again it is the
// same attempt.
func (o *operations) fail(release types.NamespacedName, kind string, err error) *operation {
	o.mu.Lock()
	defer o.mu.Unlock()
	op := o.last[release]
	if !op.failed(kind, "") || op.retry(o.clock.Now()) <= 0 {
		op = &operation{kind: kind, err: err, attempts: op.attemptsAt(kind, "") + 1, ended: o.clock.Now()}
		o.last[release] = op
	}
	c := *op
	return &c
}

// attemptsAt this that failed in a row, if it was the last that was done.
func (op *operation) attemptsAt(kind, request string) int {
	if !op.failed(kind, request) {
		return 0
	}
	return op.attempts
}

func (o *operations) finish(_ types.NamespacedName, op *operation, image *steading.ChosenImage, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	op.running, op.image, op.err, op.ended = false, image, err, o.clock.Now()
}

// failed reports whether the operation was this one and did not work.
func (op *operation) failed(kind, request string) bool {
	return op != nil && !op.running && op.err != nil && op.kind == kind && op.request == request
}

// refused reports whether it failed because the chart may not be deployed.
func (op *operation) refused() bool { return errors.As(op.err, new(*refusedError)) }

// retry is how long after now it is to be tried again; at most zero when it is due.
func (op *operation) retry(now time.Time) time.Duration {
	wait := firstRetry
	for range op.attempts - 1 {
		wait = min(2*wait, longestRetry)
	}
	if op.refused() {
		wait = refusedRetry
	}
	return op.ended.Add(wait).Sub(now)
}
