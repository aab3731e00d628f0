package placement

import (
	"cmp"
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

// writeLedger writes what is held by the Placements that exist, if that changed. The write carries the resourceVersion
// that was read: it fails when another writer granted something in between.
func (p *pass) writeLedger(ctx context.Context) error {
	entries := p.entries()
	switch {
	case p.ledger == nil && len(entries) == 0:
		return nil
	case p.ledger == nil:
		return p.createLedger(ctx, entries)
	case p.home == nil && len(p.placements) == 0:
		return p.deleteLedger(ctx)
	case equality.Semantic.DeepEqual(p.ledger.Entries, entries):
		return nil
	}
	p.ledger.Entries = entries
	return errors.Wrapf(p.client.Update(ctx, p.ledger), "cannot write the ledger of tenant %s", p.tenant)
}

func (p *pass) createLedger(ctx context.Context, entries []v1alpha1.LedgerEntry) error {
	p.ledger = &v1alpha1.Ledger{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: names.SystemNamespace,
			Name:      names.Home(p.tenant),
			Labels:    map[string]string{names.LabelTenant: p.tenant, names.LabelManagedBy: names.ManagedBy},
		},
		Entries: entries,
	}
	return errors.Wrapf(p.client.Create(ctx, p.ledger), "cannot make the ledger of tenant %s", p.tenant)
}

// deleteLedger of a tenant that is gone.
func (p *pass) deleteLedger(ctx context.Context) error {
	err := p.client.Delete(ctx, p.ledger, client.Preconditions{UID: &p.ledger.UID, ResourceVersion: &p.ledger.ResourceVersion})
	return errors.Wrapf(client.IgnoreNotFound(err), "cannot delete the ledger of tenant %s", p.tenant)
}

// entries of the ledger as it should be, sorted by Placement.
func (p *pass) entries() []v1alpha1.LedgerEntry {
	name := make(map[types.UID]string, len(p.placements))
	for i := range p.placements {
		name[p.placements[i].UID] = p.placements[i].Name
	}
	var entries []v1alpha1.LedgerEntry
	for _, d := range p.decisions {
		if d.Held == nil {
			continue
		}
		request := d.Held.Request
		// Neither is decided on.
		request.Stopped, request.DryRun = false, false
		// The grant tells which components were asked for, in less space.
		request.Components = nil
		entries = append(entries, v1alpha1.LedgerEntry{UID: d.UID, Placement: name[d.UID], Grant: d.Held.Grant, Reserved: d.Held.Reserved, Request: &request})
	}
	slices.SortFunc(entries, func(a, b v1alpha1.LedgerEntry) int {
		return cmp.Or(cmp.Compare(a.Placement, b.Placement), cmp.Compare(a.UID, b.UID))
	})
	return entries
}
