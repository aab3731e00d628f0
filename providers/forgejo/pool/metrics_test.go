package pool

import (
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

// gathered is what is told of pool linux of tenant acme, and of all pools together.
func gathered(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			name := strings.TrimPrefix(f.GetName(), "steading_runners_")
			switch {
			case name == f.GetName(), labels["tenant"] != "" && (labels["tenant"] != "acme" || labels["pool"] != "linux"):
			case f.GetType() == dto.MetricType_HISTOGRAM:
				all[name+"_sum"], all[name+"_count"] = m.GetHistogram().GetSampleSum(), float64(m.GetHistogram().GetSampleCount())
			case f.GetType() == dto.MetricType_GAUGE:
				all[name] = m.GetGauge().GetValue()
			case labels["reason"] != "":
				all[name+" "+labels["reason"]] = m.GetCounter().GetValue()
			default:
				all[name] = m.GetCounter().GetValue()
			}
		}
	}
	return all
}

// TestTheQueueIsNotToldOfWhileItIsNotSeen: the numbers of the last good look say nothing about now.
func TestTheQueueIsNotToldOfWhileItIsNotSeen(t *testing.T) {
	w := newWorld(t)
	forgetMetrics(linux)
	told := func(when string, want bool) {
		t.Helper()
		got := gathered(t)
		for _, name := range []string{"waiting_jobs", "oldest_wait_seconds"} {
			if v, ok := got[name]; ok != want {
				t.Errorf("%s: %s is told of: %t, as %v", when, name, ok, v)
			}
		}
		if _, ok := got["live"]; !ok {
			t.Errorf("%s: the runners are not told of", when)
		}
	}
	w.queue(1)
	w.look()
	w.look()
	told("the server answers", true)
	w.must(w.forgejo.SetFault(forgejo.Fault{Route: forgejo.RouteJobs, Kind: forgejo.FaultUnavailable}))
	w.failedLook()
	told("it does not", false)
	w.forgejo.UnsetFaults("", "")
	w.look()
	told("it does again", true)
	if since := gathered(t)["oldest_wait_seconds"]; since != 90 {
		t.Errorf("the job has waited for %v seconds, want 90", since)
	}
	pool := w.get()
	meta.AddAnnotations(pool, map[string]string{meta.AnnotationKeyReconciliationPaused: "true"})
	w.must(w.kube.Update(t.Context(), pool))
	w.pass()
	told("the pool is paused", false)
}

// TestMetricsTellOfAPool: the depth of its queue, the oldest wait, its runners, how long they took to be there and ran, and what
// became of them; and nothing any more when it is gone.
func TestMetricsTellOfAPool(t *testing.T) {
	w := newWorld(t)
	forgetMetrics(linux)
	before := gathered(t)
	is := func(when string, want map[string]float64) {
		t.Helper()
		got := gathered(t)
		have := map[string]float64{}
		for name := range want {
			have[name] = got[name]
			if strings.HasPrefix(name, "spawn_seconds") { // Of all pools of the process.
				have[name] -= before[name]
			}
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", when, diff)
		}
	}
	w.queue(2)
	w.look()
	// Whether its runners are counted yet is up to which pass saw the look.
	is("at once", map[string]float64{"waiting_jobs": 2, "oldest_wait_seconds": 0})
	i := w.have(2)[0]
	w.clock.Step(5 * time.Second)
	w.register(&i)
	w.look()
	is("a look later", map[string]float64{
		"waiting_jobs": 2, "oldest_wait_seconds": 35, "live": 2, "available": 2, "active": 0, "spawn_seconds_sum": 35, "spawn_seconds_count": 1,
	})

	i = w.have(2)[0]
	i.Status.AtProvider.StartTime = new(metav1.NewTime(w.clock.Now()))
	w.clock.Step(90 * time.Second)
	w.judge(&i, forgejov1.RunnerConsumed)
	w.pass()
	w.pass()
	is("one is through", map[string]float64{"runner_seconds_total": 90, "verdicts_total RunnerConsumed": 1})

	w.r.forget(t.Context(), linux)
	left := gathered(t)
	for _, name := range []string{"waiting_jobs", "oldest_wait_seconds", "live", "available", "active", "runner_seconds_total", "verdicts_total RunnerConsumed"} {
		if v, ok := left[name]; ok {
			t.Errorf("%s is %v of a pool that is gone", name, v)
		}
	}
}
