package release

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var operationSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name:    "steading_helm_operation_seconds",
	Help:    "How long Helm operations took, by kind (deploy, rollback, uninstall) and outcome (ok, refused, error).",
	Buckets: []float64{.1, .25, .5, 1, 2, 4, 8, 15, 30, 60, 120, 300},
}, []string{"kind", "outcome"})

func init() { metrics.Registry.MustRegister(operationSeconds) }

func observe(kind string, err error, took time.Duration) {
	outcome := "ok"
	switch {
	case errors.As(err, new(*refusedError)):
		outcome = "refused"
	case err != nil:
		outcome = "error"
	}
	operationSeconds.WithLabelValues(kind, outcome).Observe(took.Seconds())
}
