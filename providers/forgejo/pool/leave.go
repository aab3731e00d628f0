package pool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// patience is how long the runners of a pool that goes may take. Each lets go of a server that does not answer after two
// minutes.
const patience = 3 * time.Minute

// leave goes one step further each time: first all runners go, then the guard rails of the job namespace, the right to read the
// token, and the Runner. Nothing of it waits for the server.
func (p *pass) leave(ctx context.Context) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(p.runner, names.Finalizer) {
		return reconcile.Result{}, nil
	}
	p.claims.Leave(p.key)
	forgetQueue(p.key)
	standing, err := p.dismiss(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(standing) > 0 {
		return reconcile.Result{RequeueAfter: p.poll.After(false)}, p.tellStanding(ctx, standing)
	}
	p.sweepLast(ctx)
	if err := p.guard.Release(ctx, p.runner); err != nil {
		return reconcile.Result{}, errors.Join(errors.Wrap(err, "cannot take the guard rails off the job namespace"), p.blocked(ctx, steading.ReasonGuardRailsNotWritten, err.Error()))
	}
	if err := p.rights.Take(ctx, tokenReader(p.runner)); err != nil {
		return reconcile.Result{}, err
	}
	before := p.runner.DeepCopy()
	controllerutil.RemoveFinalizer(p.runner, names.Finalizer)
	err = p.client.Patch(ctx, p.runner, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, errors.Wrap(err, "cannot remove the finalizer")
	}
	p.forget(ctx, p.key)
	return reconcile.Result{}, nil
}

// dismiss all runners, and list those that are there still. They are read uncached: one that was made a moment ago counts.
func (p *pass) dismiss(ctx context.Context) (kit.Standing, error) {
	all, err := p.list(ctx, p.uncached)
	if err != nil {
		return nil, err
	}
	var standing kit.Standing
	for n := range all {
		i := &all[n]
		standing = append(standing, i.Name)
		if i.DeletionTimestamp != nil {
			continue
		}
		if err := p.client.Delete(ctx, i, client.Preconditions{UID: &i.UID}); client.IgnoreNotFound(err) != nil {
			return nil, errors.Wrapf(err, "cannot delete RunnerInstance %s", i.Name)
		}
	}
	slices.Sort(standing)
	return standing, nil
}

// tellStanding says what the pool waits for, on the claim too if it takes long.
func (p *pass) tellStanding(ctx context.Context, standing kit.Standing) error {
	message := fmt.Sprintf("waiting until the runners %s are gone", standing)
	leaving := xpv2.Deleting().WithMessage(message).WithObservedGeneration(p.runner.Generation)
	if !p.runner.GetCondition(leaving.Type).Equal(leaving) {
		p.runner.SetConditions(leaving)
		if err := p.put(ctx, &p.runner.Status); err != nil {
			return err
		}
	}
	if p.now.Sub(p.runner.DeletionTimestamp.Time) < patience {
		return p.report.Deleting(ctx, claimOf(p.runner))
	}
	return p.blocked(ctx, steading.ReasonWaitingForYoungers, message)
}

func (p *pass) blocked(ctx context.Context, reason xpv2.ConditionReason, message string) error {
	return p.report.Blocked(ctx, claimOf(p.runner), reason, message)
}

// sweepLast takes off the registrations that are left, if the server answers, and what is left in the job namespace. Neither
// holds the pool up.
func (p *pass) sweepLast(ctx context.Context) {
	p.session = p.memory.session
	if look, _ := p.look(); look != nil {
		if err := p.sweepRegistrations(ctx, look); err != nil {
			p.log.Info("Cannot sweep the registrations of a pool that goes", "pool", p.key.Name, "error", kit.Clean(err))
		}
	}
	for _, namespace := range p.runner.JobNamespaces() {
		if _, err := p.sweepNamespace(ctx, namespace); err != nil {
			p.log.Info("Cannot sweep a job namespace of a pool that goes", "pool", p.key.Name, "namespace", namespace, "error", kit.Clean(err))
		}
	}
}
