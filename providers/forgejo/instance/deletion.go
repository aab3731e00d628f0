package instance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/child"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// Times of deletion.
const (
	// retry is how often deregistration is tried again.
	retry = 5 * time.Second
	// askForLeave is after what time it is asked whether an operator gave the pool up.
	askForLeave = 10 * time.Second
)

// reasonLetGo of the event on the claim.
const reasonLetGo event.Reason = "RunnerLetGo"

// What is left of a runner that is deleted.
type remainder struct {
	// child and credentials hold power in the job namespace.
	child, credentials bool
	// childGoes is whether the child is being deleted already.
	childGoes bool
	// registration is on the server.
	registration bool
}

func (r remainder) none() bool { return !r.child && !r.credentials && !r.registration }

// observeDeletion of a runner. It is let go when nothing is left of it, when an operator gave its pool up, or when what is left
// is beyond reach for a while and has no power any more.
func (e *external) observeDeletion(ctx context.Context, mg *v1alpha1.RunnerInstance) (managed.ExternalObservation, error) {
	mg.SetConditions(xpv2.Deleting().WithObservedGeneration(mg.GetGeneration()))
	left, err := e.left(ctx, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if left.none() {
		e.forget(mg)
		return managed.ExternalObservation{}, nil
	}
	e.childGoes = left.childGoes
	age := e.o.Clock.Since(mg.DeletionTimestamp.Time)
	givenUp := age >= e.letGoAfter && !left.credentials && (!left.child || left.childGoes)
	if age >= askForLeave && !givenUp {
		p := mg.Spec.ForProvider
		if givenUp, err = e.o.Claims.Abandoned(ctx, claimOf(mg), p.Identity.UID); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	if !givenUp {
		return managed.ExternalObservation{ResourceExists: true}, nil
	}
	e.letGo(ctx, mg, left)
	return managed.ExternalObservation{}, nil
}

// left of the runner, as the API server has it now. In a namespace that goes nothing is left.
func (e *external) left(ctx context.Context, mg *v1alpha1.RunnerInstance) (remainder, error) {
	st := mg.Status.AtProvider
	r := remainder{registration: !st.Released && st.State != v1alpha1.StateGone && (st.Registration != nil || e.attempted)}
	o := empty(mg)
	err := e.children.uncached.Get(ctx, child.Key(mg), o)
	switch {
	case err == nil:
		r.child = child.Ours(mg, o) && (st.Child == nil || st.Child.UID == o.GetUID())
		r.childGoes = o.GetDeletionTimestamp() != nil
	case !absent(err) && !e.children.namespaceGoing(ctx, mg):
		return r, errors.Wrapf(err, "cannot read what the runner runs in, %s", child.Key(mg))
	}
	secret, err := e.children.credentials(ctx, mg)
	if err = e.unlessNamespaceGoes(ctx, mg, err); err != nil {
		return r, err
	}
	r.credentials = secret != nil
	return r, nil
}

// Delete the child and the credential, which ends all that the runner can do, and then the registration. A server that does
// not answer is tried again soon, and for a while.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.RunnerInstance) (managed.ExternalDelete, error) {
	kit.After(ctx, retry)
	err := errors.Join(
		e.unlessNamespaceGoes(ctx, mg, e.children.delete(ctx, mg)),
		e.unlessNamespaceGoes(ctx, mg, e.children.deleteCredentials(ctx, mg, e.mark.secret)))
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	if err := e.deregister(ctx, mg); err != nil {
		mg.Status.AtProvider.Message = kit.CleanMessage(fmt.Sprintf("%s; it is tried for %s", err, e.letGoAfter))
		return managed.ExternalDelete{}, nil
	}
	if !e.childGoes {
		kit.After(ctx, time.Millisecond)
	}
	return managed.ExternalDelete{}, nil
}

// letGo of a runner of which something is left, and say what on its claim.
func (e *external) letGo(ctx context.Context, mg *v1alpha1.RunnerInstance, left remainder) {
	p := mg.Spec.ForProvider
	var what []string
	if left.child {
		what = append(what, fmt.Sprintf("%s %s", child.KindOf(p.Config).Kind, child.Key(mg)))
	}
	if left.credentials {
		what = append(what, fmt.Sprintf("Secret %s", child.CredentialsKey(mg)))
	}
	if left.registration {
		what = append(what, fmt.Sprintf("%s at %s", registration(mg), p.Config.Forgejo.URL))
	}
	e.o.Claims.Event(ctx, claimOf(mg), event.Event{
		Type: event.TypeWarning, Reason: reasonLetGo,
		Message: fmt.Sprintf("runner %s is let go, and may leave behind: %s. Delete by hand what is still there", mg.Name, strings.Join(what, ", ")),
	})
	e.forget(mg)
}

// registration of the runner, by what is known of it.
func registration(mg *v1alpha1.RunnerInstance) string {
	if r := mg.Status.AtProvider.Registration; r != nil {
		return fmt.Sprintf("registration %d (%s)", r.ID, mg.Name)
	}
	return "a registration called " + mg.Name
}

func claimOf(mg *v1alpha1.RunnerInstance) kit.Claim {
	return kit.RunnerPoolClaim(mg.Spec.ForProvider.Claim)
}
