package placement

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

// release what is reserved for environments whose namespaces are known not to use it, and reserve what is in use of more than
// was granted. Where their cluster does not say, as while it is not reached, all that is reserved stays so.
func (p *pass) release(ctx context.Context, held map[types.UID]*Holding) error {
	boundaries, err := p.boundaries(ctx, p.client)
	if err != nil {
		return err
	}
	if !reservesAny(held, boundaries) {
		return nil
	}
	// What the cache has may be older than the ledger.
	if boundaries, err = p.boundaries(ctx, p.reader); err != nil {
		return err
	}
	for i := range p.placements {
		pl := &p.placements[i]
		h, b := held[pl.UID], boundaries[pl.Spec.ForProvider.Identity.UID]
		if h != nil && b != nil && countedWith(b, h.Grant) {
			h.reserve(b.Status.AtProvider.Quota.InUse)
		}
	}
	return nil
}

// reservedAnew reports whether more was reserved than before. A boundary that had the smaller caps all along, since they changed
// back at once, wakes nobody.
func (p *pass) reservedAnew() bool {
	for i, d := range p.decisions {
		before := p.state.Applicants[i].Held
		if d.Held != nil && d.Held.Reserved != nil && (before == nil || before.Reserved == nil) {
			return true
		}
	}
	return false
}

// boundaries of the tenant, by composite.
func (p *pass) boundaries(ctx context.Context, from client.Reader) (map[types.UID]*v1alpha1.Boundary, error) {
	l := &v1alpha1.BoundaryList{}
	err := from.List(ctx, l, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelTenant: p.tenant})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot list the boundaries of tenant %s", p.tenant)
	}
	all := make(map[types.UID]*v1alpha1.Boundary, len(l.Items))
	for i := range l.Items {
		all[l.Items[i].Spec.ForProvider.Identity.UID] = &l.Items[i]
	}
	return all, nil
}

func reservesAny(held map[types.UID]*Holding, boundaries map[types.UID]*v1alpha1.Boundary) bool {
	for _, h := range held {
		if h.Reserved != nil {
			return true
		}
	}
	for _, b := range boundaries {
		if q := b.Status.AtProvider.Quota; q != nil && q.InUse != nil {
			return true
		}
	}
	return false
}

// countedWith reports whether the quota of an environment's namespace has what was granted.
func countedWith(b *v1alpha1.Boundary, g v1alpha1.Grant) bool {
	q := b.Status.AtProvider.Quota
	return q != nil && q.Generation == b.Generation && g.Caps != nil && g.Caps.Equal(b.Spec.ForProvider.Caps)
}
