package target

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// TestOpenBreakersAreThoseOfTheTargetsThatThereAre: the breaker of a context that was corrected or removed while it did not answer
// is not counted any more, whatever becomes of the requests under way.
func TestOpenBreakersAreThoseOfTheTargetsThatThereAre(t *testing.T) {
	fails := roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
	targets := New()
	add := func(name string, kind Kind) {
		t.Helper()
		if err := targets.Add(name, kind, &rest.Config{Host: "https://127.0.0.1:1"}); err != nil {
			t.Fatal(err)
		}
	}
	breaks := func(name string) {
		ask := asking(t, targets.byContext[name].breaker.wrap(fails))
		for range breakerFailures {
			_ = ask()
		}
	}
	is := func(when string, want map[string]float64) {
		t.Helper()
		if diff := cmp.Diff(want, open(t, targets)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", when, diff)
		}
	}
	add("platform", Platform)
	add("acme-edge", Context)
	add("acme-far", Context)
	is("all answer", map[string]float64{"platform": 0, "context": 0})
	breaks("acme-edge")
	breaks("acme-far")
	is("two do not answer", map[string]float64{"platform": 0, "context": 2})
	add("acme-edge", Context)
	is("one is corrected", map[string]float64{"platform": 0, "context": 1})
	targets.Remove("acme-far")
	is("the other is removed", map[string]float64{"platform": 0, "context": 0})
}

// open breakers that are told of, by kind of target.
func open(t *testing.T, targets *Targets) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(targets); err != nil {
		t.Fatal(err)
	}
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Fatalf("have %v, want one metric", all)
	}
	n := map[string]float64{}
	for _, m := range all[0].GetMetric() {
		n[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
	}
	return n
}
