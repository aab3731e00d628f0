package release

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	operationSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "steading_helm_operation_seconds",
		Help:    "How long Helm operations took, by kind (deploy, rollback, uninstall) and outcome (ok, refused, error).",
		Buckets: []float64{.1, .25, .5, 1, 2, 4, 8, 15, 30, 60, 120, 300},
	}, []string{"kind", "outcome"})
	readySeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "steading_environment_ready_seconds",
		Help:    "Time from the creation of an environment's claim, which is known to the second, until it was ready for the first time.",
		Buckets: []float64{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024},
	})
)

func init() { metrics.Registry.MustRegister(operationSeconds, readySeconds) }

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
