package target

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "steading_target_requests_total",
		Help: "Requests to the API servers that environments run on, by kind of target and outcome: the class of the HTTP status, error, canceled, or broken when the target's breaker was open.",
	}, []string{"target", "outcome"})

	breakersOpen = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "steading_target_breakers_open",
		Help: "Targets that are not asked because they did not answer, by kind of target.",
	}, []string{"target"})
)

func init() { metrics.Registry.MustRegister(requests, breakersOpen) }
