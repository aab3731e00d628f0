package placement

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// readState gathers what the decision depends on.
func (p *pass) readState(ctx context.Context) error {
	p.state = State{Tenant: p.tenant, Floor: p.floor}
	p.settings()

	if err := p.readConfig(ctx); err != nil {
		return err
	}
	p.chart()
	p.state.Contexts = p.contexts(p.config)
	return p.applicants(ctx)
}

// settings are the tenant's own.
func (p *pass) settings() {
	settings := steading.TenantSpec{}
	switch {
	case p.home == nil:
		p.state.Closed = fmt.Sprintf("tenant %s does not exist: an operator applies the Tenant in %s", p.tenant, names.SystemNamespace)
	case meta.WasDeleted(p.home):
		p.state.Closed = fmt.Sprintf("tenant %s is being deleted and takes nothing new", p.tenant)
	case foreign(p.home):
		// What is claimed there was claimed of another tenant of that name, as of one that is gone.
		p.state.Closed = fmt.Sprintf("tenant %s has no namespace of its own: see the condition HomeReady of the Tenant", p.tenant)
	default:
		p.state.Unknown = !stands(p.home)
	}
	if p.home != nil {
		settings = p.home.Spec.ForProvider.Settings
	}
	p.state.Quota = settings.Quota.WithDefaults()
	p.state.Docker = settings.Docker
	p.state.Platform = settings.PlatformCluster
	if p.state.Platform == "" {
		p.state.Platform = steading.PlatformClusterFallback
	}
}

// stands reports whether the tenant has its namespace.
func stands(h *v1alpha1.Home) bool {
	return h.Status.AtProvider.Namespace != "" && !foreign(h)
}

// foreign reports whether the namespace that the tenant should have is not its own.
func foreign(h *v1alpha1.Home) bool {
	return h.GetCondition(xpv2.TypeReady).Reason == steading.ReasonForeignNamespace
}

// readConfig of the platform, cached.
func (p *pass) readConfig(ctx context.Context) error {
	c := &v1alpha1.ClusterProviderConfig{}
	err := p.client.Get(ctx, types.NamespacedName{Name: names.DefaultProviderConfig}, c)
	if err == nil {
		p.config = c
	}
	return errors.Wrapf(client.IgnoreNotFound(err), "cannot get the ClusterProviderConfig %s", names.DefaultProviderConfig)
}

// chart that is deployed with what is granted now, if it is known.
func (p *pass) chart() {
	if p.config == nil {
		p.state.ChartProblem = fmt.Sprintf("the operator has not applied the ClusterProviderConfig %s of group %s, which names the runtime's chart",
			names.DefaultProviderConfig, v1alpha1.Group)
		return
	}
	source := sourceOf(p.config)
	chart, err := p.charts.Resolve(p.tenant, source)
	if errors.Is(err, ErrAsking) {
		return
	}
	if err != nil {
		p.state.ChartProblem = kit.CleanMessage(err.Error())
		return
	}
	p.state.Chart = &v1alpha1.Chart{Repository: source.Repository, Version: source.Version, Digest: chart.Digest}
	p.state.Floor = func(docker bool) steading.Resources {
		if docker {
			return chart.DockerFloor
		}
		return chart.Floor
	}
}

// applicants are all Placements but those whose environment is gone.
func (p *pass) applicants(ctx context.Context) error {
	claimed, err := p.claims(ctx)
	if err != nil {
		return err
	}
	held := p.holdings()
	if err := p.release(ctx, held); err != nil {
		return err
	}
	for i := range p.placements {
		if p.gone[i] {
			continue
		}
		pl := &p.placements[i]
		fp := pl.Spec.ForProvider
		at, ok := claimed[fp.Claim.Name]
		if !ok {
			at = pl.CreationTimestamp.Time
		}
		a := Applicant{
			UID:         pl.UID,
			Environment: fp.Identity.Environment,
			Claimed:     at,
			Request:     fp.Request,
			Leaving:     meta.WasDeleted(pl),
			Paused:      meta.IsPaused(pl),
			Held:        held[pl.UID],
		}
		if a.pending() || a.Request.DryRun {
			a.Components = p.candidates(a)
		}
		p.state.Applicants = append(p.state.Applicants, a)
	}
	return nil
}

// claims gives the time at which each of the tenant's environments was claimed. Only the claims' metadata is cached, and
// only the order of decision depends on it.
func (p *pass) claims(ctx context.Context) (map[string]time.Time, error) {
	undecided := slices.ContainsFunc(p.placements, func(pl v1alpha1.Placement) bool {
		return pl.Status.AtProvider.DecidedGeneration != pl.Generation || pl.Status.AtProvider.Refusal != nil
	})
	if !undecided {
		return map[string]time.Time{}, nil
	}
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(steading.GroupVersion.WithKind(steading.EnvironmentKind + "List"))
	if err := p.client.List(ctx, l, client.InNamespace(names.TenantNamespace(p.tenant))); err != nil {
		return nil, errors.Wrapf(err, "cannot list the environments of tenant %s", p.tenant)
	}
	claimed := make(map[string]time.Time, len(l.Items))
	for _, c := range l.Items {
		claimed[c.Name] = c.CreationTimestamp.Time
	}
	return claimed, nil
}

// holdings are what stands in the ledger, by Placement. A grant that a Placement tells of was in the ledger before; where
// it is not there now, the ledger was lost, and the grant is held all the same.
func (p *pass) holdings() map[types.UID]*Holding {
	held := map[types.UID]*Holding{}
	for i := range p.placements {
		if g := p.placements[i].Status.AtProvider.Grant; g != nil {
			held[p.placements[i].UID] = recovered(&p.placements[i], *g)
		}
	}
	if p.ledger == nil {
		return held
	}
	for _, e := range p.ledger.Entries {
		h := &Holding{Grant: e.Grant, Request: requestOf(e.Grant), Reserved: e.Reserved}
		if e.Request != nil {
			h.Request = *e.Request
		}
		held[e.UID] = h
	}
	return held
}

// recovered is a holding of which only the grant is known. What was decided on is asked for still, unless it was refused.
func recovered(pl *v1alpha1.Placement, g v1alpha1.Grant) *Holding {
	o := pl.Status.AtProvider
	if o.DecidedGeneration == pl.Generation && o.Refusal == nil {
		return &Holding{Grant: g, Request: pl.Spec.ForProvider.Request}
	}
	return &Holding{Grant: g, Request: requestOf(g)}
}

// requestOf is the request that asks for exactly what was granted.
func requestOf(g v1alpha1.Grant) v1alpha1.Request {
	return v1alpha1.Request{Type: steading.TypeRuntime, Version: g.Version, Context: g.Context, Size: g.Caps, Docker: g.Docker}
}
