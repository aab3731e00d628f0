package server

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// requests have bounded labels: operations and results are constants of package api.
var requests = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "steading_runners_api_requests_total",
	Help: "Requests to Forgejo servers, by operation (version, jobs, runners, runner, register, deregister, user) and by result.",
}, []string{"operation", "result"})

// pollAge is told when it is asked for: it grows while nothing happens.
var pollAge = prometheus.NewDesc("steading_runners_poll_age_seconds",
	"Time since the last look at a pool's server that succeeded, or since the pool is watched if none did.", []string{"tenant", "pool"}, nil)

// Describe the age of looks.
func (s *Servers) Describe(ch chan<- *prometheus.Desc) { ch <- pollAge }

// Collect the age of looks, by pool.
func (s *Servers) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.sessions))
	s.mu.Unlock()
	for _, one := range all {
		for pool, age := range one.ages() {
			tenant, name, _ := strings.Cut(pool.Name, "-")
			ch <- prometheus.MustNewConstMetric(pollAge, prometheus.GaugeValue, age.Seconds(), tenant, name)
		}
	}
}

// ages of the last good look, by pool.
func (s *Session) ages() map[client.ObjectKey]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[client.ObjectKey]time.Duration, len(s.pools))
	for pool, p := range s.pools {
		since := p.since
		if s.look.Began.After(since) {
			since = s.look.Began
		}
		all[pool] = s.servers.o.Clock.Since(since)
	}
	return all
}

func init() { metrics.Registry.MustRegister(requests) }

func observe(operation, result string, _ time.Duration) {
	requests.WithLabelValues(operation, result).Inc()
}
