package main

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// methods that are told apart in metrics. Others come from clients, who could make up as many as they like.
var methods = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "notifications/initialized": true,
	"tools/list": true, "tools/call": true, "resources/list": true, "resources/read": true, "resources/templates/list": true,
}

// metrics of the runtime.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(id identity) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "steading_devops_mcp_requests_total",
			Help: "Requests of the model context protocol, by method and outcome (ok, error).",
		}, []string{"method", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "steading_devops_mcp_request_duration_seconds",
			Help:    "How long requests of the model context protocol took, by method.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
		}, []string{"method"}),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "steading_devops_info",
		Help:        "Whose runtime this is. Always 1.",
		ConstLabels: prometheus.Labels{"tenant": id.Tenant, "environment": id.Environment, "version": id.Version},
	})
	info.Set(1)
	m.registry.MustRegister(m.requests, m.duration, info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// count requests and the time they take.
func (m *metrics) count(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		start := time.Now()
		res, err := next(ctx, method, req)
		label, outcome := method, "ok"
		if !methods[method] {
			label = "other"
		}
		if r, ok := res.(*mcp.CallToolResult); err != nil || ok && r.IsError {
			outcome = "error"
		}
		m.requests.WithLabelValues(label, outcome).Inc()
		m.duration.WithLabelValues(label).Observe(time.Since(start).Seconds())
		return res, err
	}
}
