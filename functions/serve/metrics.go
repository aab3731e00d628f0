package serve

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the function. Labels are bounded: kind is one of the composers' or "unknown".
type Metrics struct {
	seconds *prometheus.HistogramVec
}

// NewMetrics registers the function's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "steading_function_compose_seconds",
		Help:    "Time to compose one composite, by kind and outcome (ready, progressing, held, fatal).",
		Buckets: []float64{.0001, .00025, .0005, .001, .002, .005, .01, .05, .25, 1},
	}, []string{"kind", "outcome"})}
	r.MustRegister(m.seconds)
	return m
}

func (m *Metrics) observe(kind, outcome string, d time.Duration) {
	m.seconds.WithLabelValues(kind, outcome).Observe(d.Seconds())
}
