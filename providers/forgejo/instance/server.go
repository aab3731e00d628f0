package instance

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
)

// A Server is one Forgejo, in the scope and by the token of a pool.
type Server interface {
	// Register a runner that takes one job.
	Register(ctx context.Context, name, description string) (api.Registration, error)
	// Deregister a runner. That there is none is no error.
	Deregister(ctx context.Context, id int64) error
	// User whose token it is, by its id, where that is the scope; zero where it is not known.
	User(ctx context.Context) (int64, error)
	// Runner asks for one registration. The error is [api.ErrGone] when the server says that there is none.
	Runner(ctx context.Context, id int64) (api.Runner, error)
	// Runners lists the registrations.
	Runners(ctx context.Context) ([]api.Runner, error)
	// Job is what the queue says, at a time or later, of an attempt of a job that was in it: that it waits or runs; empty when
	// it does neither any more. Labels are the runner's, among which are all that the job runs on.
	Job(ctx context.Context, handle string, labels []string, after time.Time) (api.JobStatus, error)
	// Jobs of the queue that wait or run, of those that run on no labels but these.
	Jobs(ctx context.Context, labels []string) ([]api.Job, error)
	// Listed is a registration as the last look at the server had it, nil when it was not listed, and when that look began.
	// Without a look that counts the time is zero.
	Listed(id int64) (r *api.Runner, began time.Time)
	// Recovered is when looks at the server went well again, and how long they had failed until then. Zero if they never failed.
	Recovered() (at time.Time, outage time.Duration)
	// Track a registration: its RunnerInstance is woken when its state changes, and by each look that does not list it.
	Track(id int64, instance client.ObjectKey)
}

// Servers are the sessions with all of them.
type Servers interface {
	// Session with a server, by the token in a Secret of the namespace.
	Session(ctx context.Context, f steading.ForgejoServer, namespace string) (Server, error)
	// Untrack an instance that has nothing on the server any more.
	Untrack(instance client.ObjectKey)
}

// stateOf a registration in our words.
func stateOf(r api.Runner) v1alpha1.ForgejoState {
	switch r.Status {
	case api.RunnerActive:
		return v1alpha1.StateActive
	case api.RunnerIdle:
		return v1alpha1.StateIdle
	default:
		return v1alpha1.StateOffline
	}
}

// heardOf reports whether the server has heard of a runner, ever: it declares what it is before it does anything else.
func heardOf(r api.Runner) bool {
	return r.Status != api.RunnerOffline || r.Version != "" || len(r.Labels) > 0
}
