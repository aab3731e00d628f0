package target

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var requests = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "steading_target_requests_total",
	Help: "Requests to the API servers that environments run on, by kind of target and outcome: the class of the HTTP status, error, canceled, or broken when the target's breaker was open.",
}, []string{"target", "outcome"})

// breakersOpen is counted when it is asked for: a target that is replaced or removed takes its breaker with it.
var breakersOpen = prometheus.NewDesc("steading_target_breakers_open",
	"Targets that are not asked because they did not answer, by kind of target.", []string{"target"}, nil)

// Describe the open breakers.
func (t *Targets) Describe(ch chan<- *prometheus.Desc) { ch <- breakersOpen }

// Collect the open breakers of the targets that there are, by kind.
func (t *Targets) Collect(ch chan<- prometheus.Metric) {
	open := map[Kind]int{Platform: 0, Context: 0}
	t.mu.Lock()
	for _, r := range t.byContext {
		if r.breaker.open() {
			open[r.breaker.kind]++
		}
	}
	t.mu.Unlock()
	for kind, n := range open {
		ch <- prometheus.MustNewConstMetric(breakersOpen, prometheus.GaugeValue, float64(n), string(kind))
	}
}

func init() { metrics.Registry.MustRegister(requests) }
