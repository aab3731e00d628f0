package onejob

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/steading-dev/steading/test/fakes/forgejo/internal/wire"
)

// What [Run] may end with besides other errors.
var (
	// ErrNoTask is when it was not to wait, and there was nothing.
	ErrNoTask = errors.New("no task received")
	// ErrCrashed is when the payload said so.
	ErrCrashed = errors.New("crashed")
)

// errStopped is when polling was stopped, which is well.
var errStopped = errors.New("stopped")

// ExitCode of the command for what [Run] ended with: 0 when a task was run, whatever came of it, or polling was stopped.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrNoTask):
		return 2
	default:
		return 1
	}
}

type runner struct {
	Options
	// key of the fetches until one succeeds.
	key string
}

// Run one job. When ctx is done the runner is as one that was killed: it says no more to anybody.
func Run(ctx context.Context, o Options) error {
	o.setDefaults()
	labels, err := o.valid()
	if err != nil {
		return fmt.Errorf("invalid configuration: %w", err)
	}
	r := &runner{Options: o, key: string(uuid.NewUUID())}
	if _, err := call[wire.DeclareRequest, wire.DeclareResponse](ctx, r, "Declare", wire.DeclareRequest{Version: Version, Labels: labels}); err != nil {
		return fmt.Errorf("failed to declare: %w", err)
	}
	t, err := r.poll(ctx)
	switch {
	case errors.Is(err, errStopped):
		return nil
	case err != nil:
		return err
	default:
		return r.run(ctx, t)
	}
}

// poll for a task.
func (r *runner) poll(ctx context.Context) (*wire.Task, error) {
	for {
		t, err := r.fetch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			r.say("failed to fetch task: %v", err)
		default:
			r.key = string(uuid.NewUUID())
		}
		if t != nil {
			return t, nil
		}
		if !r.Wait {
			return nil, ErrNoTask
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-r.Stop:
			return nil, errStopped
		case <-r.Clock.After(r.FetchInterval):
		}
	}
}

func (r *runner) fetch(ctx context.Context) (*wire.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if r.Handle != "" {
		res, err := call[wire.FetchSingleTaskRequest, wire.FetchSingleTaskResponse](ctx, r, "FetchSingleTask", wire.FetchSingleTaskRequest{Handle: r.Handle})
		return res.Task, err
	}
	res, err := call[wire.FetchTaskRequest, wire.FetchTaskResponse](ctx, r, "FetchTask", wire.FetchTaskRequest{})
	return res.Task, err
}

func (r *runner) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Log, format+"\n", args...) // A log that cannot be written is no reason to stop.
}
