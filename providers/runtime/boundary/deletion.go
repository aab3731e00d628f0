package boundary

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	corev1 "k8s.io/api/core/v1"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/blockers"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// observeDeletion finds out how far the deletion has come. The Boundary goes only when the server says that the namespace
// is gone, or was never ours.
func (e *external) observeDeletion(ctx context.Context, mg *v1alpha1.Boundary, ns *corev1.Namespace, err error) (managed.ExternalObservation, error) {
	p := mg.Spec.ForProvider
	claim := kit.EnvironmentClaim(p.Claim)
	gone := managed.ExternalObservation{}
	there := managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}
	if err != nil {
		return e.unreachable(ctx, mg, err)
	}
	if ns == nil {
		mg.Status.AtProvider.Blockers = nil
		return gone, e.goesOn(ctx, mg)
	}
	if err := e.o.Claims.Ours(ctx, ns, p.Identity, claim); err != nil {
		if errors.As(err, new(*kit.NotOursError)) {
			return gone, nil
		}
		return there, err
	}
	e.namespace = ns
	if ns.DeletionTimestamp == nil {
		if err := e.wait(ctx, mg); err != nil || e.waiting || mg.GetCondition(steading.ConditionDeletionBlocked).Status != corev1.ConditionTrue {
			return there, err
		}
		return e.removeAgain(ctx, mg, ns)
	}
	f := blockers.Find(ctx, ns, e.metadata, e.mapper, e.o.Clock.Now())
	mg.Status.AtProvider.Blockers = f.Lines
	e.lookAgain(ctx, f)
	if !f.Blocked {
		return there, e.goesOn(ctx, mg)
	}
	kit.After(ctx, e.o.Deletion.Next(ns.DeletionTimestamp.Time, e.o.Clock.Now()))
	return there, e.o.Claims.DeletionBlocked(ctx, mg, claim, steading.ReasonNamespaceBlocked, f.Message(ns.Name))
}

// wait for what goes first.
func (e *external) wait(ctx context.Context, mg *v1alpha1.Boundary) error {
	p := mg.Spec.ForProvider
	standing, err := e.youngers.StandingBefore(ctx, mg, names.LabelComposite, string(p.Identity.UID))
	if err != nil {
		return err
	}
	e.waiting = len(standing) > 0
	if e.waiting {
		mg.Status.AtProvider.Blockers = []string{"waiting for " + standing.String()}
		// Their deletion wakes us.
		kit.After(ctx, e.o.Deletion.Next(mg.GetDeletionTimestamp().Time, e.o.Clock.Now()))
		if e.pull, err = e.sourceOfPullSecret(ctx, p); err != nil {
			// It may be gone already, and is not what uninstalling needs.
			e.pull = nil
		}
		return nil
	}
	mg.Status.AtProvider.Blockers = nil
	return nil
}

// removeAgain what was not deleted before. A cluster that refuses it holds the deletion up as one that is not reached does.
func (e *external) removeAgain(ctx context.Context, mg *v1alpha1.Boundary, ns *corev1.Namespace) (managed.ExternalObservation, error) {
	if err := e.remove(ctx, ns); err != nil {
		return e.unreachable(ctx, mg, err)
	}
	e.namespace = nil // Delete has nothing left to do.
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

// lookAgain when nothing that is watched will change, but what it means does.
func (e *external) lookAgain(ctx context.Context, f blockers.Finding) {
	after := e.o.Poll.After(false)
	if f.Settled > 0 {
		after = min(after, f.Settled+time.Second)
	}
	kit.After(ctx, after)
}

// goesOn says that nothing holds the deletion up any more.
func (e *external) goesOn(ctx context.Context, mg *v1alpha1.Boundary) error {
	if !kit.MarkDeletionGoesOn(mg) {
		return nil
	}
	return e.o.Claims.Deleting(ctx, claimOf(mg))
}

// unreachable holds up the deletion until the cluster is reached, or an operator gives it up.
func (e *external) unreachable(ctx context.Context, mg *v1alpha1.Boundary, err error) (managed.ExternalObservation, error) {
	p := mg.Spec.ForProvider
	claim := kit.EnvironmentClaim(p.Claim)
	abandoned, herr := target.HoldUp(ctx, e.o.Claims, mg, claim, p.Identity.UID, fmt.Sprintf("namespace %s cannot be deleted yet", p.Namespace), err)
	switch {
	case herr != nil:
		return managed.ExternalObservation{}, herr
	case abandoned:
		e.o.Claims.Event(ctx, claim, event.Warning("Abandoned", errors.Errorf("the cluster of context %s was given up; namespace %s and all in it may be left there", p.Context, p.Namespace)))
		return managed.ExternalObservation{}, nil
	}
	return managed.ExternalObservation{}, err
}
