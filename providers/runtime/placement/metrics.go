package placement

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Metrics of admission. Their labels are bounded: outcomes and reasons are constants of the API.
var (
	decisions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "steading_admission_decisions_total",
		Help: "Decisions of admission that changed what an environment holds or is refused for, by outcome (granted, refused, planned, deleted) and by reason of the refusal.",
	}, []string{"outcome", "reason"})
	seconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "steading_admission_seconds",
		Help:    "Time to read a tenant's state, decide on it and write the decisions.",
		Buckets: prometheus.ExponentialBuckets(0.002, 2, 13),
	})
	conflicts = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "steading_ledger_conflicts_total",
		Help: "Writes of a tenant's ledger that lost against another writer and were decided again.",
	})
)

func init() { metrics.Registry.MustRegister(decisions, seconds, conflicts) }
