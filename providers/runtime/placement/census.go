package placement

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// countWithin is how long a count may take, so that whoever asks for metrics is not kept waiting.
const countWithin = 5 * time.Second

var environments = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "steading_environments",
	Help: "Environments by phase (Registered, Pending, Provisioning, Running, Failed, Deleting, DeletionBlocked). Only the provider that leads counts them.",
}, []string{"phase"})

// A census counts environments when it is asked, from the cache, and only while this provider leads: the others know
// nothing, and would be added to it.
type census struct {
	reader client.Reader // cached
	leads  atomic.Bool
	mu     sync.Mutex // of the gauge, which is set and read in one
}

// Start counting. A manager calls it when the provider has come to lead.
func (c *census) Start(ctx context.Context) error {
	c.leads.Store(true)
	<-ctx.Done()
	c.leads.Store(false)
	return nil
}

// Describe the gauge.
func (c *census) Describe(to chan<- *prometheus.Desc) { environments.Describe(to) }

// Collect the gauge, counted anew. What cannot be counted now is left out.
func (c *census) Collect(to chan<- prometheus.Metric) {
	if !c.leads.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), countWithin)
	defer cancel()
	counts, err := c.count(ctx)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for phase, n := range counts {
		environments.WithLabelValues(string(phase)).Set(float64(n))
	}
	environments.Collect(to)
}

// count environments by phase. Every phase is there, so that a series does not end when it comes to nothing.
func (c *census) count(ctx context.Context) (map[steading.EnvironmentPhase]int, error) {
	placements, boundaries, releases := &v1alpha1.PlacementList{}, &v1alpha1.BoundaryList{}, &v1alpha1.ReleaseList{}
	for _, l := range []client.ObjectList{placements, boundaries, releases} {
		if err := c.reader.List(ctx, l, client.InNamespace(names.SystemNamespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
	}
	blocked := map[string]bool{}
	for i := range boundaries.Items {
		b := &boundaries.Items[i]
		blocked[b.Name] = b.GetCondition(steading.ConditionDeletionBlocked).Status == corev1.ConditionTrue
	}
	deployed := map[string]*v1alpha1.Release{}
	for i := range releases.Items {
		deployed[releases.Items[i].Name] = &releases.Items[i]
	}
	counts := map[steading.EnvironmentPhase]int{}
	for _, phase := range []steading.EnvironmentPhase{
		steading.EnvironmentRegistered, steading.EnvironmentPending, steading.EnvironmentProvisioning, steading.EnvironmentRunning,
		steading.EnvironmentFailed, steading.EnvironmentDeleting, steading.EnvironmentDeletionBlocked,
	} {
		counts[phase] = 0
	}
	for i := range placements.Items {
		p := &placements.Items[i]
		counts[phaseOf(p, deployed[p.Name], blocked[p.Name])]++
	}
	return counts, nil
}

// phaseOf an environment, as its claim says it, by its Placement, its Release if it has one, and whether its deletion is
// held up.
func phaseOf(p *v1alpha1.Placement, r *v1alpha1.Release, blocked bool) steading.EnvironmentPhase {
	request, grant := p.Spec.ForProvider.Request, p.Status.AtProvider.Grant
	switch {
	case meta.WasDeleted(p) && blocked:
		return steading.EnvironmentDeletionBlocked
	case meta.WasDeleted(p):
		return steading.EnvironmentDeleting
	case r == nil && request.DryRun:
		return steading.EnvironmentRegistered
	case grant == nil:
		return steading.EnvironmentPending
	case r == nil && record(request):
		return steading.EnvironmentRegistered
	case r == nil:
		return steading.EnvironmentProvisioning
	case kit.IsReady(r):
		return steading.EnvironmentRunning
	}
	switch r.Status.AtProvider.State {
	case v1alpha1.ReleaseFailed:
		return steading.EnvironmentFailed
	case v1alpha1.ReleaseRolledBack, v1alpha1.ReleaseDeployed:
		return steading.EnvironmentRunning
	default:
		return steading.EnvironmentProvisioning
	}
}
