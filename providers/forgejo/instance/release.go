package instance

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/forgejo/child"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// stopping is how long what was told to stop may take until it is looked at again. That it stopped is watched.
const stopping = 30 * time.Second

// Update takes away what is left of a runner that was judged: its registration, then its credential, then what runs. What one
// of them fails with does not keep the others.
func (e *external) Update(ctx context.Context, mg *v1alpha1.RunnerInstance) (managed.ExternalUpdate, error) {
	st := &mg.Status.AtProvider
	deregistered := e.deregister(ctx, mg)
	deleted := e.spend(ctx, mg)
	quiet, stopped := e.quiet(ctx, mg)
	if err := errors.Join(deregistered, deleted, stopped); err != nil {
		return managed.ExternalUpdate{}, err
	}
	if quiet {
		st.Released = true
		e.forget(mg)
	}
	return managed.ExternalUpdate{}, nil
}

// spend the credential, once.
func (e *external) spend(ctx context.Context, mg *v1alpha1.RunnerInstance) error {
	if e.mark.spent {
		return nil
	}
	err := e.unlessNamespaceGoes(ctx, mg, e.children.deleteCredentials(ctx, mg, e.mark.secret))
	e.mark.spent = err == nil
	return err
}

// deregister the runner, unless the server said that it is gone.
func (e *external) deregister(ctx context.Context, mg *v1alpha1.RunnerInstance) error {
	st := &mg.Status.AtProvider
	if st.State == v1alpha1.StateGone || st.Registration == nil && !e.attempted {
		return nil
	}
	s, err := e.session(ctx, mg)
	if err != nil {
		return errors.Wrap(err, "cannot deregister the runner")
	}
	if st.Registration != nil {
		err = takeOff(ctx, s, *st.Registration)
	} else {
		err = e.deregisterMarked(ctx, s, mg)
	}
	if err != nil {
		return err
	}
	st.State = v1alpha1.StateGone
	return nil
}

// takeOff a registration, unless its number is another one's by now.
func takeOff(ctx context.Context, s Server, known v1alpha1.Registration) error {
	r, err := s.Runner(ctx, known.ID)
	switch {
	case errors.Is(err, api.ErrGone), errors.Is(err, api.ErrScopeGone), err == nil && r.UUID != known.UUID:
		return nil
	case err != nil:
		return errors.Wrap(err, "cannot make sure that the registration is the runner's")
	}
	return s.Deregister(ctx, known.ID)
}

// quiet stops what still runs a while after the verdict, and reports whether nothing does. A kubelet says that a container ended
// before it says so of the pod: one that was stopped in between would be deleted, and its log with it.
func (e *external) quiet(ctx context.Context, mg *v1alpha1.RunnerInstance) (bool, error) {
	s, err := e.children.state(ctx, mg)
	if err != nil || s.Quiet || s.Settling {
		return s.Quiet, err
	}
	if left := grace - e.o.Clock.Since(mg.Status.AtProvider.CompletionTime.Time); left > 0 && s.Phase != child.Starting {
		kit.After(ctx, left)
		return false, nil
	}
	kit.After(ctx, stopping)
	return false, e.unlessNamespaceGoes(ctx, mg, e.children.stop(ctx, mg, s.UID))
}

// unlessNamespaceGoes is an error of the job namespace, nil if that goes with all that is in it.
func (e *external) unlessNamespaceGoes(ctx context.Context, mg *v1alpha1.RunnerInstance, err error) error {
	if err != nil && e.children.namespaceGoing(ctx, mg) {
		return nil
	}
	return err
}
