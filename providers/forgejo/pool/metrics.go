package pool

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
)

// Metrics of pools. Their labels are bounded by the number of pools and by reasons, which are constants of the API: none is of
// a runner or of a job.
var (
	byPool = []string{"tenant", "pool"}

	waitingGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "steading_runners_waiting_jobs",
		Help: "Waiting jobs that a pool claims, at the last look at its server, less those that its runners took since. Not told while the server cannot be looked at.",
	}, byPool)
	oldestWait = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "steading_runners_oldest_wait_seconds",
		Help: "Time since the job that waits longest was first seen waiting, at the last look at a pool's server. Not told while the server cannot be looked at.",
	}, byPool)
	liveRunners = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "steading_runners_live",
		Help: "Runners of a pool that are not finished, which maxRunners limits.",
	}, byPool)
	availableRunners = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "steading_runners_available",
		Help: "Runners of a pool that can still take a job.",
	}, byPool)
	activeRunners = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "steading_runners_active",
		Help: "Runners of a pool that have a job in hand.",
	}, byPool)
	verdicts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "steading_runners_verdicts_total",
		Help: "Runners of a pool that ended, by the reason of their verdict.",
	}, []string{"tenant", "pool", "reason"})
	spawnSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "steading_runners_spawn_seconds",
		Help:    "Time from the beginning of the look that saw a job until its runner was registered and had its Job or virtual machine.",
		Buckets: prometheus.ExponentialBuckets(0.05, 2, 12),
	})
	runnerSeconds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "steading_runners_runner_seconds_total",
		Help: "Time that runners of a pool ran, from their Job's or virtual machine's start to their verdict.",
	}, byPool)
)

func init() {
	metrics.Registry.MustRegister(waitingGauge, oldestWait, liveRunners, availableRunners, activeRunners, verdicts, spawnSeconds, runnerSeconds)
}

// labelsOf a pool: tenants' names have no hyphen.
func labelsOf(pool client.ObjectKey) prometheus.Labels {
	tenant, name, _ := strings.Cut(pool.Name, "-")
	return prometheus.Labels{"tenant": tenant, "pool": name}
}

// gauge the pool. What only a look can tell is not told while there is none that counts: an old number would keep an alert firing.
func (p *pass) gauge() {
	l := labelsOf(p.key)
	liveRunners.With(l).Set(float64(p.decision.Live))
	availableRunners.With(l).Set(float64(p.decision.Available))
	activeRunners.With(l).Set(float64(p.decision.Active))
	if p.state.Look == nil {
		forgetQueue(p.key)
		return
	}
	waitingGauge.With(l).Set(float64(p.decision.Waiting))
	oldest := p.now
	for _, since := range p.memory.waiting {
		if since.Before(oldest) {
			oldest = since
		}
	}
	oldestWait.With(l).Set(p.now.Sub(oldest).Seconds())
}

// timeStarts tells how long runners took until they were registered and had a child.
func (p *pass) timeStarts() {
	there := map[string]bool{}
	for n := range p.instances {
		i := &p.instances[n]
		o := i.Status.AtProvider
		began, ok := p.memory.starting[i.Name]
		if !ok {
			continue
		}
		if o.Registration != nil && o.Child != nil {
			spawnSeconds.Observe(p.now.Sub(began).Seconds())
			continue
		}
		there[i.Name] = !judged(i)
	}
	for name := range p.memory.starting {
		if !there[name] {
			delete(p.memory.starting, name)
		}
	}
}

// countVerdict of a runner.
func countVerdict(pool client.ObjectKey, i *forgejov1.RunnerInstance) {
	o := i.Status.AtProvider
	l := labelsOf(pool)
	if o.StartTime != nil && o.CompletionTime != nil && o.CompletionTime.After(o.StartTime.Time) {
		runnerSeconds.With(l).Add(o.CompletionTime.Sub(o.StartTime.Time).Seconds())
	}
	l["reason"] = string(o.Reason)
	verdicts.With(l).Inc()
}

// forgetQueue of a pool that is not looked at now.
func forgetQueue(pool client.ObjectKey) {
	l := labelsOf(pool)
	waitingGauge.Delete(l)
	oldestWait.Delete(l)
}

// forgetMetrics of a pool that is gone.
func forgetMetrics(pool client.ObjectKey) {
	l := labelsOf(pool)
	for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{
		waitingGauge, oldestWait, liveRunners, availableRunners, activeRunners, verdicts, runnerSeconds,
	} {
		v.DeletePartialMatch(l)
	}
}
