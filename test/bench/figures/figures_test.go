package figures

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLatencyIsAddedRoundByRound(t *testing.T) {
	s := time.Second
	have := LatencyOf(7, []time.Duration{5 * s, 3 * s, 4 * s}, []time.Duration{4 * s, 1 * s, 3 * s})
	want := Latency{Idle: 7, Platform: Percentiles{P50: 4, P95: 5}, Outside: Percentiles{P50: 3, P95: 4}, Added: Percentiles{P50: 1, P95: 2}}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	cases := map[string]struct {
		reason string
		n, p   int
		want   float64
	}{
		"None":   {reason: "nothing measured is nothing", n: 0, p: 95, want: 0},
		"One":    {reason: "one value is every percentile", n: 1, p: 95, want: 1},
		"Twenty": {reason: "the 95th percentile of twenty is the nineteenth", n: 20, p: 95, want: 19},
		"Median": {reason: "the median of twenty is the tenth", n: 20, p: 50, want: 10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var d []time.Duration
			for i := tc.n; i > 0; i-- {
				d = append(d, time.Duration(i)*time.Second)
			}
			if have := percentile(d, tc.p); have != tc.want {
				t.Errorf("%s: have %v, want %v", tc.reason, have, tc.want)
			}
		})
	}
}

func TestRunIsReadAsItWasWritten(t *testing.T) {
	want := &Run{Date: "2026-01-02", Versions: map[string]string{"go": "1.26"}, Ready: []Latency{{Idle: 100, Added: Percentiles{P95: 2.5}}}, Function: &Function{Children: 20, P99Milliseconds: 1}}
	path := filepath.Join(t.TempDir(), "run.json")
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	have, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
}

// What misses its goal is said to.
func TestMissedGoalsAreSaid(t *testing.T) {
	out := &strings.Builder{}
	r := &Run{Ready: []Latency{{Added: Percentiles{P95: 2.5}}}, Gone: []Latency{{Added: Percentiles{P95: 2.5}}}}
	if err := r.Markdown(out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 2.50 s | **missed** |", "| 2.50 s | met |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
