package oci

import (
	"errors"
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
	Help: "Questions to OCI registries, by operation and outcome (ok, missing, the class of the HTTP status, or error).",
}, []string{"operation", "outcome"})

func init() { metrics.Registry.MustRegister(requests) }

func observe(operation string, err error) {
	requests.WithLabelValues(operation, outcomeOf(err)).Inc()
}

// outcomeOf a question. That something is not there is an answer; that it may not be read is none.
func outcomeOf(err error) string {
	status := statusOf(err)
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrAbsent):
		return "missing"
	case status != 0:
		return strconv.Itoa(status/100) + "xx"
	default:
		return "error"
	}
}
