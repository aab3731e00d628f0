package instance

import (
	"context"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/forgejo/child"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// patience with a job namespace that refuses the provider: a right that was just given takes a moment to be known.
const patience = 30 * time.Second

// soon is when a runner that was made is looked at, once the caches have most likely seen it: its child is recorded then.
const soon = 20 * time.Millisecond

// Create goes on where the last one stopped: it registers the runner, records what it registered as, makes sure that the
// server took it for one job only, writes its credential and makes its child.
func (e *external) Create(ctx context.Context, mg *v1alpha1.RunnerInstance) (managed.ExternalCreation, error) {
	st := &mg.Status.AtProvider
	// What it will be made of is known to be right before anybody else hears of it.
	if _, err := child.Of(mg, ""); err != nil {
		return managed.ExternalCreation{}, e.fail(ctx, mg, err)
	}
	s, err := e.session(ctx, mg)
	if err != nil {
		return managed.ExternalCreation{}, errors.Wrap(err, "cannot register the runner")
	}
	if err := e.register(ctx, s, mg); err != nil {
		return managed.ExternalCreation{}, err
	}
	s.Track(st.Registration.ID, client.ObjectKeyFromObject(mg))
	if err := e.makeChild(ctx, mg); err != nil {
		return managed.ExternalCreation{}, err
	}
	kit.After(ctx, soon)
	return managed.ExternalCreation{}, nil
}

// register the runner and write its credential, unless both were done before.
func (e *external) register(ctx context.Context, s Server, mg *v1alpha1.RunnerInstance) error {
	known, err := e.known(ctx, mg)
	if known || err != nil {
		return err
	}
	if err := e.deregisterOld(ctx, s, mg); err != nil {
		return err
	}
	user, err := s.User(ctx)
	if err != nil {
		return err
	}
	r, err := s.Register(ctx, mg.Name, e.description(mg))
	switch {
	case errors.Is(err, api.ErrForbidden), errors.Is(err, api.ErrRefused):
		// Looks may go well all the same, by a token that may read only.
		return e.fail(ctx, mg, err)
	case err != nil:
		return err
	}
	e.mark.registered = e.o.Clock.Now()
	st := &mg.Status.AtProvider
	st.Phase, st.State, st.Registration = v1alpha1.RunnerPending, v1alpha1.StateOffline, &v1alpha1.Registration{ID: r.ID, UUID: r.UUID, OwnerID: user}
	if err := e.children.client.Status().Update(ctx, mg); err != nil {
		return errors.Wrap(err, "cannot record what the runner is registered as")
	}
	back, err := s.Runner(ctx, r.ID)
	switch {
	case err == nil && back.UUID != r.UUID:
		return errors.New("cannot make sure that the runner is registered for one job: its number is another one's")
	case err != nil:
		return errors.Wrap(err, "cannot make sure that the runner is registered for one job")
	case !back.Ephemeral:
		return e.fail(ctx, mg, errors.New("the server registered it for any number of jobs, though it was asked for one only: Forgejo has to be 15 or later"))
	}
	return e.writeCredentials(ctx, mg, r)
}

// known reports whether the registration that is recorded is the one of the credential that there is.
func (e *external) known(ctx context.Context, mg *v1alpha1.RunnerInstance) (bool, error) {
	if mg.Status.AtProvider.Registration == nil {
		return false, nil
	}
	secret, err := e.children.credentials(ctx, mg)
	if err != nil || secret == nil {
		return false, err
	}
	r, ok := child.RegistrationOf(secret)
	have := mg.Status.AtProvider.Registration
	return ok && r.ID == have.ID && r.UUID == have.UUID, nil
}

// deregisterOld takes off what an earlier Create registered: what is recorded, whose credential nobody has, or, if it did not
// get as far as recording it, what carries the runner's mark.
func (e *external) deregisterOld(ctx context.Context, s Server, mg *v1alpha1.RunnerInstance) error {
	if r := mg.Status.AtProvider.Registration; r != nil {
		return takeOff(ctx, s, *r)
	}
	if !e.attempted {
		return nil
	}
	return e.deregisterMarked(ctx, s, mg)
}

// deregisterMarked takes off all registrations that carry the runner's mark. A list may leave one out; the pool's sweep finds
// it then.
func (e *external) deregisterMarked(ctx context.Context, s Server, mg *v1alpha1.RunnerInstance) error {
	all, err := s.Runners(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.Name == mg.Name && r.Description == e.description(mg) {
			if err := s.Deregister(ctx, r.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *external) description(mg *v1alpha1.RunnerInstance) string {
	return names.RegistrationMark(string(mg.Spec.ForProvider.Identity.UID), mg.Name)
}

// writeCredentials of a registration. Those of an earlier one, which cannot be changed, are deleted first.
func (e *external) writeCredentials(ctx context.Context, mg *v1alpha1.RunnerInstance, r api.Registration) error {
	for range 2 {
		s := child.Credentials(mg, child.Registration{ID: r.ID, UUID: r.UUID, Token: r.Token})
		err := e.children.client.Create(ctx, s)
		if err == nil {
			e.mark.secret, e.mark.seen = s.UID, e.o.Clock.Now()
			return nil
		}
		if !kerrors.IsAlreadyExists(err) {
			return e.final(ctx, mg, errors.Wrap(err, "cannot write the runner's credential"))
		}
		old, err := e.children.credentials(ctx, mg)
		if err != nil {
			return err
		}
		if old == nil {
			return e.fail(ctx, mg, errors.Errorf("Secret %s exists and is not the runner's: delete it", child.CredentialsKey(mg)))
		}
		if err := client.IgnoreNotFound(e.children.client.Delete(ctx, old, client.Preconditions{UID: ptr.To(old.UID)})); err != nil {
			return errors.Wrap(err, "cannot delete the credential of an earlier registration")
		}
	}
	return errors.Errorf("cannot write the runner's credential %s: somebody else does", child.CredentialsKey(mg))
}

// makeChild that runs the runner.
func (e *external) makeChild(ctx context.Context, mg *v1alpha1.RunnerInstance) error {
	o, err := child.Of(mg, mg.Status.AtProvider.Registration.UUID)
	if err != nil {
		return e.fail(ctx, mg, err)
	}
	err = client.WithFieldValidation(e.children.client, "Strict").Create(ctx, o)
	if err == nil {
		e.mark.child = o.GetUID()
		return nil
	}
	if !kerrors.IsAlreadyExists(err) {
		return e.final(ctx, mg, errors.Wrapf(err, "cannot make what the runner runs in, %s", child.Key(mg)))
	}
	have := empty(mg)
	if err := e.children.uncached.Get(ctx, child.Key(mg), have); err != nil {
		return errors.Wrapf(err, "cannot read what the runner runs in, %s", child.Key(mg))
	}
	if !child.Ours(mg, have) {
		return e.fail(ctx, mg, errors.Errorf("%s %s exists and is not the runner's: delete it", child.KindOf(mg.Spec.ForProvider.Config).Kind, child.Key(mg)))
	}
	return nil
}

// final is the error of a write to the job namespace. One that trying again does not change is a verdict.
func (e *external) final(ctx context.Context, mg *v1alpha1.RunnerInstance, err error) error {
	switch {
	case err == nil:
		return nil
	case kerrors.IsInvalid(err), kerrors.IsBadRequest(err), kerrors.IsNotFound(err), kerrors.IsRequestEntityTooLargeError(err), meta.IsNoMatchError(err),
		kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return e.fail(ctx, mg, err)
	case kerrors.IsForbidden(err) && (strings.Contains(err.Error(), "exceeded quota") || e.o.Clock.Since(mg.CreationTimestamp.Time) > patience):
		return e.fail(ctx, mg, err)
	default:
		return err
	}
}

// fail the runner for what trying again does not change.
func (e *external) fail(ctx context.Context, mg *v1alpha1.RunnerInstance, why error) error {
	if _, err := e.conclude(ctx, mg, verdict{reason: v1alpha1.CreateFailed, message: why.Error()}); err != nil {
		return err
	}
	return why
}
