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
	want := &Run{Circumstances: Circumstances{Date: "2026-01-02", Versions: map[string]string{"go": "1.26"}}, Runners: &Runners{Circumstances: Circumstances{Date: "2026-01-03"}, Queue: &Queue{Jobs: 5}}, Ready: []Latency{{Idle: 100, Added: Percentiles{P95: 2.5}}}, Function: &Function{Children: 20, P99Milliseconds: 1}}
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

// TestGoalsOfRunners are met at the edge and missed beyond it.
func TestGoalsOfRunners(t *testing.T) {
	calls := func(jobs float64) Calls {
		return Calls{Pools: 10, Minutes: 1, Idle: map[string]float64{"jobs": 2}, Load: map[string]float64{"jobs": jobs, "register": 7}}
	}
	cases := map[string]struct {
		reason string
		of     Runners
		want   string
	}{
		"Spawn":         {"less than 300 ms is met", Runners{Spawn: Percentiles{P50: 0.1, P95: 0.29}}, "| < 0.3 s | 0.29 s (p50 0.10 s) | met |"},
		"SpawnSlow":     {"300 ms are not", Runners{Spawn: Percentiles{P50: 0.1, P95: 0.3}}, "| < 0.3 s | 0.30 s (p50 0.10 s) | **missed** |"},
		"Calls":         {"a minute of polls every 30 s may have three", Runners{PollSeconds: 30, Calls: []Calls{calls(3)}}, "listings of jobs a poll interval, by 10 pools of one server, under load | 1 | 1.50 (10 calls a minute in all) | met |"},
		"CallsTooMany":  {"four are one too many", Runners{PollSeconds: 30, Calls: []Calls{calls(4)}}, "| 1 | 2.00 (11 calls a minute in all) | **missed** |"},
		"Peak":          {"as many as the maximum is met", Runners{Queue: &Queue{Jobs: 9, Max: 3, PeakRegistrations: 3, PeakChildren: 3}}, "| <= 3 | 3; 3 | met |"},
		"PeakExceeded":  {"one more registration is not", Runners{Queue: &Queue{Jobs: 9, Max: 3, PeakRegistrations: 4, PeakChildren: 3}}, "| <= 3 | 4; 3 | **missed** |"},
		"PeakChildren":  {"nor is one more child", Runners{Queue: &Queue{Jobs: 9, Max: 3, PeakRegistrations: 3, PeakChildren: 4}}, "| <= 3 | 3; 4 | **missed** |"},
		"Once":          {"every job on one runner is met", Runners{Queue: &Queue{Jobs: 9, Once: 9, Seconds: 4, Runners: 10}}, "| all | 9 in 4 s, on 10 runners | met |"},
		"OnceButForOne": {"all but one are not", Runners{Queue: &Queue{Jobs: 9, Once: 8, Seconds: 4, Runners: 10}}, "| all | 8 in 4 s, on 10 runners | **missed** |"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := &strings.Builder{}
			if err := (&Run{Runners: &tc.of}).Markdown(out); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), tc.want) {
				t.Errorf("%s: no %q in\n%s", tc.reason, tc.want, out)
			}
		})
	}
}

func TestCallsAreShownByRoute(t *testing.T) {
	out := &strings.Builder{}
	r := &Run{Runners: &Runners{PollSeconds: 5, Calls: []Calls{{Pools: 1, Minutes: 1, Jobs: 60, Idle: map[string]float64{"jobs": 12}, Load: map[string]float64{"jobs": 12, "runner": 60.5}}}}}
	if err := r.Markdown(out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| pools | | jobs run | jobs | runner | in all |", "| 1 | idle | 0 | 12.0 | 0.0 | 12.0 |", "| 1 | under load | 60 | 12.0 | 60.5 | 72.5 |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestRunnersAloneHaveNoOtherCircumstances, as when nothing else was measured yet.
func TestRunnersAloneHaveNoOtherCircumstances(t *testing.T) {
	out := &strings.Builder{}
	if err := (&Run{Runners: &Runners{Circumstances: Circumstances{Date: "2026-01-02"}}}).Markdown(out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "| date |"); n != 1 {
		t.Errorf("%d dates in\n%s", n, out)
	}
}
