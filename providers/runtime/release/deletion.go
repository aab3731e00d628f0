package release

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// uninstallAttempts are made before a release is left to the deletion of its namespace, if that is due anyway.
const uninstallAttempts = 3

// observeDeletion finds out how far the deletion has come. The Release goes when Helm keeps no record of it any more, or its
// namespace is gone or going, with all in it.
func (e *external) observeDeletion(ctx context.Context, mg *v1alpha1.Release, ns *corev1.Namespace, err error) (managed.ExternalObservation, error) {
	gone, there := managed.ExternalObservation{}, managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}
	if err != nil {
		return e.unreachable(ctx, mg, err)
	}
	op := e.operations.of(keyOf(mg))
	if op != nil && op.running {
		e.deleting(mg, "")
		return there, nil
	}
	p := mg.Spec.ForProvider
	if ns == nil || ns.DeletionTimestamp != nil || !kit.Stamped(ns, p.Identity) {
		return gone, e.forget(ctx, mg)
	}
	h, err := e.helm.history(ctx, p)
	if err != nil {
		return e.unread(ctx, mg, err)
	}
	last := h.last()
	if last == nil {
		return gone, e.forget(ctx, mg)
	}
	if err := e.ours(ctx, p, *last); err != nil {
		if errors.As(err, new(*kit.NotOursError)) {
			return gone, e.forget(ctx, mg)
		}
		return there, err
	}
	if standing, err := e.youngers(ctx, mg); err != nil || len(standing) > 0 {
		e.deleting(mg, "waiting for "+standing.String())
		// Its deletion wakes us.
		kit.After(ctx, e.o.Deletion.Next(mg.GetDeletionTimestamp().Time, e.o.Clock.Now()))
		return there, err
	}
	if !op.failed(uninstalling, "") {
		e.verdict.uninstall = true
		e.deleting(mg, "")
		return there, nil
	}
	return e.uninstallAgain(ctx, mg, op)
}

// youngers are the edges of the environment that still stand. They go first, so that no name points at a service that is
// gone. A component may go while its environment stays, and its Edge with it.
func (e *external) youngers(ctx context.Context, mg *v1alpha1.Release) (kit.Standing, error) {
	if mg.Spec.ForProvider.Component != nil {
		return nil, nil
	}
	y := kit.Youngers{Reader: e.system, Kinds: []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind(v1alpha1.EdgeKind)}}
	return y.Standing(ctx, names.LabelComposite, string(mg.Spec.ForProvider.Identity.UID))
}

// uninstallAgain after it failed, but not at once and not for ever.
func (e *external) uninstallAgain(ctx context.Context, mg *v1alpha1.Release, op *operation) (managed.ExternalObservation, error) {
	there := managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}
	claim := claimOf(mg)
	why := kit.CleanMessage(op.err.Error())
	if left, err := e.leftToNamespace(ctx, mg, op); left || err != nil {
		return managed.ExternalObservation{ResourceExists: !left}, err
	}
	e.deleting(mg, why)
	if wait := op.retry(e.o.Clock.Now()); wait > 0 {
		kit.After(ctx, wait)
	} else {
		e.verdict.uninstall = true
	}
	if op.attempts < uninstallAttempts {
		return there, nil
	}
	return there, e.o.Claims.DeletionBlocked(ctx, mg, claim, steading.ReasonDeployFailed, why)
}

// unread records of Helm's hold the deletion up like a cluster that is not reached, and count as attempts to uninstall it.
func (e *external) unread(ctx context.Context, mg *v1alpha1.Release, err error) (managed.ExternalObservation, error) {
	op := e.operations.fail(keyOf(mg), uninstalling, err)
	if left, err := e.leftToNamespace(ctx, mg, op); left || err != nil {
		return managed.ExternalObservation{ResourceExists: !left}, err
	}
	e.deleting(mg, kit.CleanMessage(err.Error()))
	return e.unreachable(ctx, mg, err)
}

// leftToNamespace reports whether the release is left to the deletion of its namespace, after it could not be uninstalled.
func (e *external) leftToNamespace(ctx context.Context, mg *v1alpha1.Release, op *operation) (bool, error) {
	if op.attempts < uninstallAttempts {
		return false, nil
	}
	due, err := e.namespaceIsDue(ctx, mg)
	if err != nil || !due {
		return false, err
	}
	e.o.Claims.Event(ctx, claimOf(mg), event.Warning("UninstallFailed", errors.Errorf("%s; what is left goes with the namespace", kit.CleanMessage(op.err.Error()))))
	return true, e.forget(ctx, mg)
}

// namespaceIsDue reports whether the namespace is going to be deleted next, which takes all of the release with it.
func (e *external) namespaceIsDue(ctx context.Context, mg *v1alpha1.Release) (bool, error) {
	b := &v1alpha1.Boundary{}
	id := mg.Spec.ForProvider.Identity
	err := e.system.Get(ctx, client.ObjectKey{Namespace: mg.Namespace, Name: names.Environment(id.Tenant, id.Environment)}, b)
	if kerrors.IsNotFound(err) {
		return true, nil
	}
	return b.DeletionTimestamp != nil, errors.Wrap(err, "cannot read the environment's Boundary")
}

func (e *external) deleting(mg *v1alpha1.Release, why string) {
	st := &mg.Status.AtProvider
	st.State, st.Reason, st.Message = v1alpha1.ReleaseDeleting, "", why
}

// forget what this process knew of a release that is gone.
func (e *external) forget(ctx context.Context, mg *v1alpha1.Release) error {
	e.operations.forget(keyOf(mg))
	if err := e.values.letGo(ctx, mg); err != nil {
		return err
	}
	if mg.GetCondition(steading.ConditionDeletionBlocked).Status != corev1.ConditionTrue {
		return nil
	}
	return e.o.Claims.Deleting(ctx, claimOf(mg))
}

// unreachable holds up the deletion until the cluster is reached, or an operator gives it up.
func (e *external) unreachable(ctx context.Context, mg *v1alpha1.Release, err error) (managed.ExternalObservation, error) {
	p := mg.Spec.ForProvider
	what := fmt.Sprintf("release %s in namespace %s cannot be uninstalled yet", p.ReleaseName, p.Namespace)
	abandoned, herr := target.HoldUp(ctx, e.o.Claims, mg, claimOf(mg), p.Identity.UID, what, err)
	switch {
	case herr != nil:
		return managed.ExternalObservation{}, herr
	case abandoned:
		return managed.ExternalObservation{}, e.forget(ctx, mg)
	}
	return managed.ExternalObservation{}, err
}
