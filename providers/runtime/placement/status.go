package placement

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kerrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// writePlacements tells each Placement what was decided. It reports whether all could be told: one that changed in
// between is decided on again.
func (p *pass) writePlacements(ctx context.Context) (settled bool, err error) {
	decided := make(map[types.UID]Decision, len(p.decisions))
	for _, d := range p.decisions {
		decided[d.UID] = d
	}
	settled = true
	for i := range p.placements {
		err := p.writePlacement(ctx, i, decided[p.placements[i].UID])
		if kerrors.IsConflict(err) {
			settled = false
			continue
		}
		if err != nil {
			return false, errors.Wrapf(err, "cannot write placement %s", p.placements[i].Name)
		}
	}
	return settled, nil
}

func (p *pass) writePlacement(ctx context.Context, i int, d Decision) error {
	pl := &p.placements[i]
	if p.gone[i] {
		return p.letGo(ctx, pl)
	}
	if meta.IsPaused(pl) {
		return nil
	}
	before := pl.Status.DeepCopy()
	switch {
	case meta.WasDeleted(pl):
		markLeaving(pl, p.standing[i])
	case d.Undecided:
		return nil
	default:
		p.mark(pl, d)
	}
	if equality.Semantic.DeepEqual(before, &pl.Status) {
		return nil
	}
	if err := p.client.Status().Update(ctx, pl); err != nil {
		return client.IgnoreNotFound(err)
	}
	countDecision(before.AtProvider, pl.Status.AtProvider)
	return nil
}

// mark a Placement with what was decided.
func (p *pass) mark(pl *v1alpha1.Placement, d Decision) {
	o := &pl.Status.AtProvider
	o.DecidedGeneration = pl.Generation
	o.Refusal, o.Plan = d.Refusal, d.Plan
	o.Grant = nil
	if d.Held != nil {
		o.Grant = d.Held.Grant.DeepCopy()
	}
	o.Exposure = p.state.exposure(o.Grant)
	if p.home != nil {
		s := p.home.Spec.ForProvider.Settings
		o.Tenant = &v1alpha1.TenantSettings{Owners: s.Owners, Registry: s.Registry, Operations: s.Operations}
	}
	pl.Status.ObservedGeneration = pl.Generation
	pl.SetConditions(xpv2.ReconcileSuccess().WithObservedGeneration(pl.Generation))
	if d.Refusal != nil {
		kit.MarkNotReady(pl, xpv2.ConditionReason(d.Refusal.Reason), d.Refusal.Message)
		return
	}
	kit.MarkReady(pl)
}

// markLeaving says what a deleted Placement waits for.
func markLeaving(pl *v1alpha1.Placement, s kit.Standing) {
	pl.SetConditions(
		xpv2.Deleting().WithMessage("waiting until "+s.String()+" are gone").WithObservedGeneration(pl.Generation),
		xpv2.ReconcileSuccess().WithObservedGeneration(pl.Generation),
	)
}

// countDecision counts a decision that changed something.
func countDecision(before, now v1alpha1.PlacementObservation) {
	switch {
	case now.Refusal != nil && (before.Refusal == nil || before.Refusal.Reason != now.Refusal.Reason):
		decisions.WithLabelValues("refused", now.Refusal.Reason).Inc()
	case now.Refusal == nil && len(now.Plan) > 0 && len(before.Plan) == 0:
		decisions.WithLabelValues("planned", "").Inc()
	case now.Grant != nil && !equality.Semantic.DeepEqual(before.Grant, now.Grant):
		decisions.WithLabelValues("granted", string(steading.ReasonGranted)).Inc()
	}
}
