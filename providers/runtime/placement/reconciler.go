package placement

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/usage"
)

// tries at writing a Ledger that another writer changed, before the tenant is queued again.
const tries = 5

// soon is when to look again after an object changed under the reconciler's hands.
const soon = 100 * time.Millisecond

// younger kinds that a Placement waits for before it goes.
var younger = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind(v1alpha1.EdgeKind),
	v1alpha1.GroupVersion.WithKind(v1alpha1.BoundaryKind),
	v1alpha1.GroupVersion.WithKind(v1alpha1.ReleaseKind),
}

// A Reconciler decides on the environments of one tenant at a time. Requests name the tenant.
type Reconciler struct {
	client   client.Client // cached
	reader   client.Reader // uncached
	log      logging.Logger
	clock    clock.WithTicker
	poll     kit.Poll
	charts   Charts
	floor    func(docker bool) steading.Resources
	usage    usage.Log
	youngers kit.Youngers
	reports  *reports
}

// Reconcile decides on what is pending, writes what was granted to the Ledger and then to the Placements, lets go those
// whose environment is gone, and reports what is in use to the Home.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	tenant := req.Name
	start := r.clock.Now()
	defer func() { seconds.Observe(r.clock.Since(start).Seconds()) }()

	for range tries {
		p, err := r.read(ctx, tenant)
		if err != nil {
			return reconcile.Result{}, err
		}
		err = p.decide(ctx)
		if lost(err) {
			continue
		}
		if err != nil {
			return reconcile.Result{}, err
		}
		err = p.writeLedger(ctx)
		if lost(err) {
			conflicts.Inc()
			r.log.Debug("Another writer changed the ledger; deciding again", "tenant", tenant)
			continue
		}
		if err != nil {
			return reconcile.Result{}, err
		}
		return r.finish(ctx, p)
	}
	return reconcile.Result{RequeueAfter: soon}, nil
}

// finish tells what stands in the ledger by now.
func (r *Reconciler) finish(ctx context.Context, p *pass) (reconcile.Result, error) {
	settled, err := p.writePlacements(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !settled {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	wait, err := p.report(ctx)
	if err != nil || wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	if p.home == nil && len(p.placements) == 0 {
		return reconcile.Result{}, nil
	}
	if p.reservedAnew() {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{RequeueAfter: r.poll.After(true)}, nil
}

// lost reports whether a write lost against another writer.
func lost(err error) bool { return kerrors.IsConflict(err) || kerrors.IsAlreadyExists(err) }

// pass is one look at a tenant and what came of it.
type pass struct {
	*Reconciler
	tenant     string
	ledger     *v1alpha1.Ledger
	home       *v1alpha1.Home
	placements []v1alpha1.Placement
	clusters   []v1alpha1.Cluster
	config     *v1alpha1.ClusterProviderConfig // nil: there is none yet
	// gone are the Placements, by index, whose environment is gone; standing is what the other deleted ones wait for.
	gone      map[int]bool
	standing  map[int]kit.Standing
	state     State
	decisions []Decision
}

// read the tenant's Ledger, Placements, Clusters and Home, uncached. The Ledger comes first: a Placement that it names and
// the list after it does not show is gone, not new.
func (r *Reconciler) read(ctx context.Context, tenant string) (*pass, error) {
	p := &pass{Reconciler: r, tenant: tenant, gone: map[int]bool{}, standing: map[int]kit.Standing{}}
	key := client.ObjectKey{Namespace: names.SystemNamespace, Name: names.Home(tenant)}

	ledger := &v1alpha1.Ledger{}
	switch err := r.reader.Get(ctx, key, ledger); {
	case err == nil:
		p.ledger = ledger
	case !kerrors.IsNotFound(err):
		return nil, errors.Wrapf(err, "cannot get the ledger of tenant %s", tenant)
	}

	list := &v1alpha1.PlacementList{}
	err := r.reader.List(ctx, list, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelTenant: tenant})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot list the placements of tenant %s", tenant)
	}
	p.placements = list.Items
	if err := p.readClusters(ctx); err != nil {
		return nil, err
	}

	home := &v1alpha1.Home{}
	switch err := r.reader.Get(ctx, key, home); {
	case err == nil:
		p.home = home
	case !kerrors.IsNotFound(err):
		return nil, errors.Wrapf(err, "cannot get the home of tenant %s", tenant)
	}
	return p, nil
}

// decide readies what is needed, and decides.
func (p *pass) decide(ctx context.Context) error {
	if err := p.addFinalizers(ctx); err != nil {
		return err
	}
	if err := p.tearDown(ctx); err != nil {
		return err
	}
	if err := p.readState(ctx); err != nil {
		return err
	}
	p.decisions = Decide(p.state)
	return nil
}
