package cluster

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// external is one look at a Cluster.
type external struct {
	*connector
	policy address.Policy

	// Seen by Observe, for what follows it in the same pass.
	kept  *kept
	proof *offer // proved, and to be kept
	guard guard
	stale []*unstructured.Unstructured
}

var _ managed.TypedExternalClient[*v1alpha1.Cluster] = &external{}

// exists and is as it should be, for now.
var exists = managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}

// Observe what is kept, what the claim offers, and what the lines to the two see. The Cluster exists once a credential was
// proved; until then there is nothing to make, and it is said why.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.Cluster) (managed.ExternalObservation, error) {
	var err error
	if e.kept, err = e.keeper.read(ctx, mg, e.policy); err != nil {
		return managed.ExternalObservation{}, err
	}
	if meta.WasDeleted(mg) {
		return e.observeLeaving(ctx, mg)
	}
	if err := e.use(ctx, mg); err != nil {
		return managed.ExternalObservation{}, err
	}
	of, err := e.offered(ctx, mg)
	wrong, err := split(err)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	e.hold(ctx, mg, of)
	if e.kept == nil {
		return e.observeFirst(ctx, mg, of, wrong)
	}
	e.mark(mg)
	wrong, err = e.judge(ctx, mg, of, wrong)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	return e.outcome(ctx, mg, wrong)
}

// use what is kept, whatever the claim offers.
func (e *external) use(ctx context.Context, mg *v1alpha1.Cluster) error {
	if e.kept == nil {
		return nil
	}
	e.lines.add(ctx, mg.Name, e.kept.endpoint)
	e.describe(mg)
	if err := e.offerTarget(mg); err != nil { //nolint:contextcheck // Targets outlive a reconcile.
		return err
	}
	e.explain(mg)
	return nil
}

// explain to all who use the context why it is not reached, if it is not.
func (e *external) explain(mg *v1alpha1.Cluster) {
	var why target.Cause
	if p := e.lines.to(mg.Name, e.kept.endpoint).state().problem; p != nil {
		why = p
	}
	e.targets.Explain(target.NameOf(mg.Spec.ForProvider.Identity.Tenant, mg.Spec.ForProvider.Context), why)
}

// offered is what the claim offers, once it may be read.
func (e *external) offered(ctx context.Context, mg *v1alpha1.Cluster) (*offer, error) {
	if err := e.prepare(ctx, mg); err != nil {
		return nil, err
	}
	of, err := e.offers.read(ctx, mg, e.policy)
	if err != nil {
		return nil, err
	}
	return &of, nil
}

// split an error into what is wrong with the offer, and any other.
func split(err error) (*UnreachedError, error) {
	var p *UnreachedError
	if errors.As(err, &p) {
		return p, nil
	}
	return nil, err
}

// hold lines to what is kept and what is offered.
func (e *external) hold(ctx context.Context, mg *v1alpha1.Cluster, of *offer) {
	var endpoints []Endpoint
	if e.kept != nil {
		endpoints = append(endpoints, e.kept.endpoint)
	}
	if of != nil {
		endpoints = append(endpoints, of.endpoint)
	}
	e.lines.hold(ctx, mg.Name, endpoints...)
}

// observeFirst is Observe before any credential was proved.
func (e *external) observeFirst(ctx context.Context, mg *v1alpha1.Cluster, of *offer, wrong *UnreachedError) (managed.ExternalObservation, error) {
	if of == nil {
		e.notReached(ctx, mg, wrong)
		return exists, nil
	}
	s := e.lines.to(mg.Name, of.endpoint).state()
	switch {
	case !s.tried:
		if mg.GetCondition(xpv2.TypeReady).Status == corev1.ConditionUnknown {
			mg.SetConditions(xpv2.Creating().WithMessage("the cluster is being tried"))
		}
		return exists, nil
	case s.problem != nil:
		e.notReached(ctx, mg, s.problem)
		return exists, nil //nolint:nilerr // It was told.
	}
	e.proof = of
	return managed.ExternalObservation{}, nil
}

// judge the offer beside what is kept. It returns what is wrong with it.
func (e *external) judge(ctx context.Context, mg *v1alpha1.Cluster, of *offer, wrong *UnreachedError) (*UnreachedError, error) {
	switch {
	case of == nil:
		return wrong, nil
	case of.endpoint.reaches(e.kept.endpoint):
		if e.kept.secret.DeletionTimestamp != nil {
			e.proof = of // It is made anew.
		}
		return nil, e.observeGuard(ctx, mg)
	case of.endpoint.Server != e.kept.endpoint.Server && used(mg) > 0:
		return problem(steading.ReasonContextImmutable, "spec.server cannot be changed from %s while %d environments are on the context: delete them, or set it back",
			e.kept.endpoint.Server, used(mg)), nil
	}
	s := e.lines.to(mg.Name, of.endpoint).state()
	if s.up() {
		e.proof = of
	}
	return s.problem, nil
}

func used(mg *v1alpha1.Cluster) int32 {
	if u := mg.Status.AtProvider.Environments; u != nil {
		return u.Used
	}
	return 0
}

// outcome of a look at a Cluster that has a credential.
func (e *external) outcome(ctx context.Context, mg *v1alpha1.Cluster, wrong *UnreachedError) (managed.ExternalObservation, error) {
	if wrong == nil {
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: e.proof == nil && len(e.stale) == 0}, nil
	}
	err := fmt.Errorf("what the claim says now does not work, so the last good credential stays in use: %w", wrong)
	if mg.GetCondition(xpv2.TypeSynced).Status == corev1.ConditionTrue {
		e.o.Claims.Event(ctx, claimOf(mg), event.Warning(event.Reason(wrong.Reason), err))
	}
	return managed.ExternalObservation{}, err
}

// describe in status what the line to the kept endpoint sees. Before it has seen anything, nothing changes.
func (e *external) describe(mg *v1alpha1.Cluster) {
	o := &mg.Status.AtProvider
	o.Credential = e.kept.source
	if s := e.lines.to(mg.Name, e.kept.endpoint).state(); s.tried {
		o.Reachable = s.up() && e.excess(mg) == nil
		if s.version != "" {
			o.Version = s.version
		}
	}
}

// mark the Cluster ready while its kept endpoint is reached.
func (e *external) mark(mg *v1alpha1.Cluster) {
	s, over := e.lines.to(mg.Name, e.kept.endpoint).state(), e.excess(mg)
	switch {
	case !s.tried:
	case s.problem != nil:
		kit.MarkNotReady(mg, s.problem.Reason, s.problem.Message)
	case over != nil:
		kit.MarkNotReady(mg, over.ConditionReason(), over.Error())
	default:
		kit.MarkReady(mg)
	}
}

// excess is what keeps the cluster from being watched though it answers, nil if nothing does.
func (e *external) excess(mg *v1alpha1.Cluster) *target.ExcessError {
	return e.targets.Excess(target.NameOf(mg.Spec.ForProvider.Identity.Tenant, mg.Spec.ForProvider.Context))
}

// notReached says why no credential was proved yet, on the claim too when that is new.
func (e *external) notReached(ctx context.Context, mg *v1alpha1.Cluster, p *UnreachedError) {
	before := mg.GetCondition(xpv2.TypeReady)
	kit.MarkNotReady(mg, p.Reason, p.Message)
	mg.Status.AtProvider.Reachable = false
	if now := mg.GetCondition(xpv2.TypeReady); now.Reason != before.Reason || now.Message != before.Message {
		e.o.Claims.Event(ctx, claimOf(mg), event.Warning(event.Reason(p.Reason), p))
	}
}

// observeGuard looks whether the guard stands on the target, when that answers.
func (e *external) observeGuard(ctx context.Context, mg *v1alpha1.Cluster) error {
	l := e.lines.to(mg.Name, e.kept.endpoint)
	if !l.state().up() {
		return nil
	}
	var err error
	if e.guard, err = guardOf(mg, l); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if e.stale, err = e.guard.stale(ctx); err != nil {
		notGuarded(mg, err)
		return nil
	}
	if len(e.stale) == 0 {
		mg.Status.AtProvider.Guarded, mg.Status.AtProvider.GuardMessage = true, ""
	}
	return nil
}

// notGuarded says why. The cluster is used all the same: it is the tenant's.
func notGuarded(mg *v1alpha1.Cluster, err error) {
	mg.Status.AtProvider.Guarded, mg.Status.AtProvider.GuardMessage = false, kit.CleanMessage(err.Error())
}

// Create keeps the first credential that was proved.
func (e *external) Create(ctx context.Context, mg *v1alpha1.Cluster) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, e.keeper.keep(ctx, mg, nil, e.proof.endpoint, e.proof.source)
}

// Update keeps a new credential that was proved, or repairs the guard.
func (e *external) Update(ctx context.Context, mg *v1alpha1.Cluster) (managed.ExternalUpdate, error) {
	if e.proof != nil {
		kit.After(ctx, atOnce)
		return managed.ExternalUpdate{}, e.keeper.keep(ctx, mg, e.kept, e.proof.endpoint, e.proof.source)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := e.guard.install(ctx, e.stale)
	if kerrors.IsConflict(err) || kerrors.IsAlreadyExists(err) {
		// Another context on the same cluster was faster. What it wrote is built on.
		kit.After(ctx, atOnce)
		return managed.ExternalUpdate{}, nil
	}
	if err != nil {
		notGuarded(mg, err)
		if _, may := refused(err); may {
			return managed.ExternalUpdate{}, nil
		}
		return managed.ExternalUpdate{}, err
	}
	mg.Status.AtProvider.Guarded, mg.Status.AtProvider.GuardMessage = true, ""
	return managed.ExternalUpdate{}, nil
}

// Disconnect does nothing: lines outlive a reconcile.
func (e *external) Disconnect(context.Context) error { return nil }
