package instance

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
)

// Labels are a tenant and its pool, of which there are as many as there are pools, and a verdict's reason, of which there are
// nine. None is of a runner or a job.
var (
	verdicts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "steading_runners_verdicts_total",
		Help: "Runners that ended, by the reason of the verdict.",
	}, []string{"tenant", "pool", "reason"})
	spawns = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "steading_runners_spawn_seconds",
		Help:    "Time from when a runner's record was first seen until it was registered and its Job or VirtualMachine was made.",
		Buckets: []float64{.01, .025, .05, .1, .2, .3, .5, 1, 2, 5, 10, 30, 60},
	}, []string{"tenant", "pool"})
	ran = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "steading_runners_runner_rantotal",
		Help: "Time that runners ran, from the start of the pod's container or the machine to the verdict.",
	}, []string{"tenant", "pool"})
)

func init() { metrics.Registry.MustRegister(verdicts, spawns, ran) }

func poolOf(mg *v1alpha1.RunnerInstance) []string {
	p := mg.Spec.ForProvider
	return []string{p.Identity.Tenant, strings.TrimPrefix(p.Pool.Name, p.Identity.Tenant+"-")}
}

// concluded counts a verdict, and for how long the runner ran.
func concluded(mg *v1alpha1.RunnerInstance) {
	st := mg.Status.AtProvider
	verdicts.WithLabelValues(append(poolOf(mg), string(st.Reason))...).Inc()
	if st.StartTime != nil {
		ran.WithLabelValues(poolOf(mg)...).Add(max(0, st.CompletionTime.Sub(st.StartTime.Time).Seconds()))
	}
}

// spawned measures how long a runner took to be made.
func spawned(mg *v1alpha1.RunnerInstance, took time.Duration) {
	spawns.WithLabelValues(poolOf(mg)...).Observe(took.Seconds())
}
