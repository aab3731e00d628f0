package edge

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Metrics of edges. Their labels are bounded: reasons are constants of the API.
var (
	verdicts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "steading_edge_verdicts_total",
		Help: "Verdicts of edges that changed, by what they are about (exposed, certificate) and their new reason.",
	}, []string{"verdict", "reason"})
	sinceCreation = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "steading_edge_seconds",
		Help:    "Time from the creation of an edge to a good verdict, by what it is about (exposed, certificate).",
		Buckets: prometheus.ExponentialBuckets(0.25, 2, 15),
	}, []string{"verdict"})
	cleanups = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "steading_edge_cleanups_total",
		Help: "Edges that are gone, by outcome: clean, remainder when something was left after a minute; and remainders that ended, by outcome: cleaned, superseded by a new edge of the same environment.",
	}, []string{"outcome"})
	remainders = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "steading_edge_remainders",
		Help: "Remainders of edges that are still to be cleaned up.",
	})
)

func init() { metrics.Registry.MustRegister(verdicts, sinceCreation, cleanups, remainders) }
