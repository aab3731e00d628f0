package cluster

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// observeLeaving reports whether there is anything left to wait for or to delete. What is on the context needs it to the
// end, so the kept credential stays in use.
func (e *external) observeLeaving(ctx context.Context, mg *v1alpha1.Cluster) (managed.ExternalObservation, error) {
	if e.kept != nil {
		e.hold(ctx, mg, nil)
		return exists, e.use(ctx, mg)
	}
	standing, err := e.dependents(ctx, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	reads, err := e.mayRead(ctx, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if len(standing.names) > 0 || reads {
		return exists, nil
	}
	e.letGo(ctx, mg)
	return managed.ExternalObservation{}, nil
}

// Delete waits for what is on the context, then takes the guard from the target, and then what was made here.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.Cluster) (managed.ExternalDelete, error) {
	kit.After(ctx, e.o.Deletion.Next(mg.DeletionTimestamp.Time, e.o.Clock.Now()))
	standing, err := e.dependents(ctx, mg)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	if len(standing.names) > 0 {
		return managed.ExternalDelete{}, e.wait(ctx, mg, standing)
	}
	if e.kept != nil {
		if done, err := e.unguard(ctx, mg); err != nil || !done {
			return managed.ExternalDelete{}, err
		}
	}
	return managed.ExternalDelete{}, e.clear(ctx, mg)
}

// wait for what is on the context. It is blocked while somebody else has to act: what stands is not being deleted itself.
func (e *external) wait(ctx context.Context, mg *v1alpha1.Cluster, standing dependents) error {
	if len(standing.staying) == 0 {
		return e.goesOn(ctx, mg)
	}
	return e.blocked(ctx, mg, steading.ReasonWaitingForYoungers, fmt.Sprintf(
		"the context is kept while environments are on it: %s; delete them first", standing.staying))
}

// unguard takes the context out of the target's guard. It reports whether that is done, or was given up.
func (e *external) unguard(ctx context.Context, mg *v1alpha1.Cluster) (bool, error) {
	l := e.lines.to(mg.Name, e.kept.endpoint)
	s := l.state()
	if !s.tried {
		return false, nil // The line wakes us.
	}
	if s.problem != nil {
		return e.abandoned(ctx, mg, s.problem)
	}
	g, err := guardOf(mg, l)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err = g.remove(ctx)
	if why, may := refused(err); may {
		e.left(ctx, mg, why)
		return true, nil
	}
	return err == nil, err
}

// abandoned reports whether an operator gave up the target, which does not answer.
func (e *external) abandoned(ctx context.Context, mg *v1alpha1.Cluster, p *UnreachedError) (bool, error) {
	f := mg.Spec.ForProvider
	given, err := e.o.Claims.Abandoned(ctx, kit.ContextClaim(f.Claim), f.Identity.UID)
	if err != nil {
		return false, err
	}
	if given {
		e.left(ctx, mg, "the cluster was given up: "+p.Message)
		return true, nil
	}
	return false, e.blocked(ctx, mg, p.Reason, fmt.Sprintf(
		"what guards the cluster cannot be removed from it: %s. If it is gone for good, an operator sets the annotation %s: %s on the Context", p.Message, names.AnnotationAbandon, f.Identity.UID))
}

// left says what may be left on the target.
func (e *external) left(ctx context.Context, mg *v1alpha1.Cluster, why string) {
	e.o.Claims.Event(ctx, claimOf(mg), event.Warning("Abandoned", errors.Errorf(
		"roles and admission policies with the label %s=%s may be left on %s: %s", names.LabelManagedBy, names.ManagedBy, mg.Spec.ForProvider.Server, why)))
}

// clear what was made on the control plane. The right to read the tenant's Secrets goes before the credential, so that it is
// looked for as long as that is there.
func (e *external) clear(ctx context.Context, mg *v1alpha1.Cluster) error {
	p := mg.Spec.ForProvider
	e.informed.Of(ctx, mg.Name)
	if err := e.unrequest(ctx, p); err != nil {
		return err
	}
	if err := e.rights().Take(ctx, reader(p)); err != nil {
		return err
	}
	if e.kept != nil {
		if err := e.keeper.forget(ctx, e.kept); err != nil {
			return err
		}
	}
	kit.After(ctx, atOnce)
	return e.goesOn(ctx, mg)
}

// mayRead reports whether the right to read the tenant's Secrets is still there.
func (e *external) mayRead(ctx context.Context, mg *v1alpha1.Cluster) (bool, error) {
	p := mg.Spec.ForProvider
	b := &rbacv1.RoleBinding{}
	err := e.reader.Get(ctx, client.ObjectKeyFromObject(reader(p)), b)
	if kerrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, errors.Wrap(err, "cannot look for the right to read the context's credential")
	}
	// In a namespace that goes, so does it.
	return b.DeletionTimestamp == nil && kit.Ours(b, p.Identity, "") == nil, nil
}

// letGo of everything that is held for the Cluster in this process.
func (e *external) letGo(ctx context.Context, mg *v1alpha1.Cluster) {
	p := mg.Spec.ForProvider
	e.lines.drop(mg.Name)
	e.informed.Of(ctx, mg.Name)
	e.registered.forget(mg.Name)
	e.targets.Remove(target.NameOf(p.Identity.Tenant, p.Context))
}

func (e *external) blocked(ctx context.Context, mg *v1alpha1.Cluster, reason xpv2.ConditionReason, message string) error {
	return e.o.Claims.DeletionBlocked(ctx, mg, claimOf(mg), reason, message)
}

// goesOn says that nothing holds the deletion up any more.
func (e *external) goesOn(ctx context.Context, mg *v1alpha1.Cluster) error {
	kit.MarkDeletionGoesOn(mg)
	return e.o.Claims.Deleting(ctx, claimOf(mg))
}
