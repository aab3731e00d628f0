package oci

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Operations as metrics tell them apart.
const (
	operationResolve = "resolve"
	operationPull    = "pull"
	operationProbe   = "probe"
)

var requests = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "steading_registry_operations_total",
	Help: "Questions to OCI registries, by operation and outcome (ok, the class of the HTTP status, or error).",
}, []string{"operation", "outcome"})

func init() { metrics.Registry.MustRegister(requests) }

func observe(operation string, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
		if status := statusOf(err); status != 0 {
			outcome = strconv.Itoa(status/100) + "xx"
		}
	}
	requests.WithLabelValues(operation, outcome).Inc()
}
