package placement

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/usage"
)

// reportEvery is how often at most a tenant's Home, and with it its composite and claim, is told what is in use.
const reportEvery = 5 * time.Second

// recent is how many usage events a tenant sees.
const recent = 20

// reports remembers when each tenant was last reported on.
type reports struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	last  map[string]time.Time
}

func newReports(c clock.PassiveClock) *reports {
	return &reports{clock: c, last: map[string]time.Time{}}
}

// wait is how long the next report of the tenant has to wait; 0 when it may be made, which counts it as made.
func (r *reports) wait(tenant string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if last, ok := r.last[tenant]; ok && now.Sub(last) < reportEvery {
		return reportEvery - now.Sub(last)
	}
	r.last[tenant] = now
	return 0
}

func (r *reports) forget(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, tenant)
}

// report writes to the Home what is in use, and to the Clusters how full they are, if it changed. It returns how long that
// has to wait, or 0.
func (p *pass) report(ctx context.Context) (time.Duration, error) {
	if p.home == nil {
		p.reports.forget(p.tenant)
		return 0, nil
	}
	want, err := p.observation(ctx)
	if err != nil {
		return 0, err
	}
	untold := p.untold()
	if len(untold) == 0 && equality.Semantic.DeepEqual(want, reported(p.home)) {
		return 0, nil
	}
	if wait := p.reports.wait(p.tenant); wait > 0 {
		return wait, nil
	}
	if err := p.tellClusters(ctx, untold); err != nil {
		return 0, err
	}
	if equality.Semantic.DeepEqual(want, reported(p.home)) {
		return 0, nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"atProvider": map[string]any{
		"environments":      want.Environments,
		"usage":             want.Usage,
		"recentUsageEvents": want.RecentUsageEvents,
	}}})
	if err != nil {
		return 0, errors.Wrap(err, "cannot encode what is in use")
	}
	err = p.client.Status().Patch(ctx, p.home, client.RawPatch(types.MergePatchType, patch))
	return 0, errors.Wrapf(client.IgnoreNotFound(err), "cannot report to the home of tenant %s", p.tenant)
}

// reported is the part of a Home's status that admission writes.
func reported(h *v1alpha1.Home) v1alpha1.HomeObservation {
	o := h.Status.AtProvider
	return v1alpha1.HomeObservation{Environments: o.Environments, Usage: o.Usage, RecentUsageEvents: o.RecentUsageEvents}
}

// observation is what is in use now.
func (p *pass) observation(ctx context.Context) (v1alpha1.HomeObservation, error) {
	events, err := usage.Recent(ctx, p.client, p.tenant, recent)
	if err != nil {
		return v1alpha1.HomeObservation{}, err
	}
	counts := &steading.EnvironmentCounts{}
	used := *steading.MustResources("0", "0", "0")
	for i, d := range p.decisions {
		a := p.state.Applicants[i]
		counted(counts, a, d)
		if d.Held == nil {
			continue
		}
		if counts := d.Held.counts(); counts != nil {
			used = used.Add(*counts)
		}
	}
	total := *p.state.Quota.Total
	return v1alpha1.HomeObservation{
		Environments: counts,
		Usage: &steading.Usage{
			CPU:     usageOf(used.CPU, total.CPU),
			Memory:  usageOf(used.Memory, total.Memory),
			Storage: usageOf(used.Storage, total.Storage),
		},
		RecentUsageEvents: events,
	}, nil
}

func counted(c *steading.EnvironmentCounts, a Applicant, d Decision) {
	switch {
	case a.Leaving:
		c.TearingDown++
	case d.Held == nil && d.Refusal != nil:
		c.Refused++
	case d.Held == nil:
		// It only asks for a plan, or is undecided.
	case a.Request.Stopped:
		c.Total++
		c.Stopped++
	default:
		c.Total++
		c.Running++
	}
}

func usageOf(used, limit resource.Quantity) steading.UsageOf {
	free := minus(limit, used)
	if free.Sign() < 0 {
		free = minus(limit, limit)
	}
	return steading.UsageOf{Projected: used, Limit: limit, Free: free}
}
