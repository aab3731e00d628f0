package placement

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/usage"
)

// finalizer keeps a Placement until its environment is gone. It is the one that Crossplane's managed resources have.
const finalizer = managed.FinalizerName

// addFinalizers before anything is granted, so that nothing that holds a grant can go without being noticed.
func (p *pass) addFinalizers(ctx context.Context) error {
	for i := range p.placements {
		pl := &p.placements[i]
		if meta.WasDeleted(pl) || meta.IsPaused(pl) || !controllerutil.AddFinalizer(pl, finalizer) {
			continue
		}
		err := p.client.Update(ctx, pl)
		if kerrors.IsNotFound(err) {
			p.gone[i] = true
			continue
		}
		if err != nil {
			return errors.Wrapf(err, "cannot add the finalizer of placement %s", pl.Name)
		}
	}
	return nil
}

// tearDown finds the deleted Placements whose environment is gone, and records that it is.
func (p *pass) tearDown(ctx context.Context) error {
	deleted := false
	for i := range p.placements {
		deleted = deleted || leaves(&p.placements[i])
	}
	if !deleted {
		return nil
	}
	standing, err := p.youngers.StandingBy(ctx, names.LabelTenant, p.tenant, names.LabelComposite)
	if err != nil {
		return err
	}
	for i := range p.placements {
		pl := &p.placements[i]
		if !leaves(pl) {
			continue
		}
		if s := standing[string(pl.Spec.ForProvider.Identity.UID)]; len(s) > 0 {
			p.standing[i] = s
			continue
		}
		if err := p.recordDeleted(ctx, pl); err != nil {
			return err
		}
		p.gone[i] = true
	}
	return nil
}

// leaves reports whether a Placement is on its way out. One that is paused stays as it is until it is not paused any more.
func leaves(pl *v1alpha1.Placement) bool { return meta.WasDeleted(pl) && !meta.IsPaused(pl) }

// recordDeleted records that an environment which ran at some time is gone.
func (p *pass) recordDeleted(ctx context.Context, pl *v1alpha1.Placement) error {
	if !controllerutil.ContainsFinalizer(pl, finalizer) {
		return nil
	}
	id := pl.Spec.ForProvider.Identity
	// What was granted last may never have served.
	ran, err := p.usage.Provisioned(ctx, id.UID)
	if err != nil || ran == nil {
		return err
	}
	return p.usage.Record(ctx, usage.Entry{
		Identity: id, Transition: v1alpha1.TransitionDeleted, Time: p.clock.Now(),
		Version: ran.Version, Context: ran.Context, Caps: ran.Caps,
	})
}

// letGo of a Placement whose environment is gone, after the ledger does not name it any more.
func (p *pass) letGo(ctx context.Context, pl *v1alpha1.Placement) error {
	if !controllerutil.RemoveFinalizer(pl, finalizer) {
		return nil
	}
	if err := p.client.Update(ctx, pl); err != nil {
		return client.IgnoreNotFound(err)
	}
	decisions.WithLabelValues("deleted", "").Inc()
	return nil
}
