package server

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

// TestPollAgeGrowsByItself: a server that is never looked at again, or does not answer, is told by a metric that nobody has to
// set, and that has a pool's labels only.
func TestPollAgeGrowsByItself(t *testing.T) {
	w := newWorld(t, "127.0.0.0/8")
	pool := client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-linux"}
	s := w.session()
	s.Subscribe(pool, time.Minute)
	s.lookOnce(t.Context())
	w.clock.Step(42 * time.Second)
	if have := age(t, w.servers); have != 42 {
		t.Errorf("the last look is %v seconds old, want 42", have)
	}
	must(t, w.forgejo.SetFault(forgejo.Fault{Route: forgejo.RouteJobs, Kind: forgejo.FaultUnavailable}))
	s.lookOnce(t.Context())
	w.clock.Step(time.Minute)
	if have := age(t, w.servers); have != 102 {
		t.Errorf("a look that failed counts: %v seconds, want 102", have)
	}
}

// age of the only pool's last look.
func age(t *testing.T, s *Servers) float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	must(t, r.Register(s))
	all, err := r.Gather()
	must(t, err)
	if len(all) != 1 || len(all[0].GetMetric()) != 1 || len(all[0].GetMetric()[0].GetLabel()) != 2 {
		t.Fatalf("have %v, want one age with the labels tenant and pool", all)
	}
	return all[0].GetMetric()[0].GetGauge().GetValue()
}
