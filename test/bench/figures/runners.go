package figures

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Runners is what was measured of runner pools, against a stand-in for Forgejo on the same machine.
type Runners struct {
	Circumstances
	// Rounds of the latency.
	Rounds int `json:"rounds"`
	// PollSeconds is the poll interval of all pools.
	PollSeconds float64 `json:"pollSeconds"`
	// Spawn is from the server's answer with a new job in its queue until its runner is registered and its child is seen, in
	// seconds; one job at a time.
	Spawn Percentiles `json:"spawn"`
	// Calls of the server's API.
	Calls []Calls `json:"calls"`
	// Queue is a long one.
	Queue *Queue `json:"queue,omitempty"`
}

// Calls of the server's API a minute, by so many pools that share a server, a scope and a token. Those of the runners
// themselves do not count.
type Calls struct {
	Pools int `json:"pools"`
	// Minutes that each was counted for.
	Minutes float64 `json:"minutes"`
	// Idle is with an empty queue, and Load with jobs in it all the time. By route.
	Idle map[string]float64 `json:"idle"`
	Load map[string]float64 `json:"load"`
	// Jobs that ran under load.
	Jobs int `json:"jobs"`
}

// routeJobs lists the queue.
const routeJobs = "jobs"

// Queue is what became of a queue that is longer than a pool's maximum.
type Queue struct {
	Jobs int `json:"jobs"`
	Max  int `json:"max"`
	// PeakRegistrations that the server had at once, and PeakChildren that were not finished at once.
	PeakRegistrations int `json:"peakRegistrations"`
	PeakChildren      int `json:"peakChildren"`
	// Spawn is from the answer with the queue in it until each child of the first Max is seen, in seconds.
	Spawn Percentiles `json:"spawn"`
	// Seconds from the first job queued until the last was reported.
	Seconds float64 `json:"seconds"`
	// Once is how many jobs succeeded and were given to one runner.
	Once int `json:"once"`
	// Runners that were made, and what each cost: calls of the server's API, and requests to the API server of Kubernetes,
	// watches aside.
	Runners  int     `json:"runners"`
	Calls    float64 `json:"calls"`
	Requests float64 `json:"requests"`
}

func (r *Runners) goals(t *strings.Builder) {
	if r == nil {
		return
	}
	row(t, "job seen in the queue to runner registered and its child created, p95", "< 0.3 s", fmt.Sprintf("%s (p50 %s)", seconds(r.Spawn.P95), seconds(r.Spawn.P50)), r.Spawn.P95 < goalSpawn)
	for _, c := range r.Calls {
		for what, calls := range c.each() {
			// One more than the time has in it, since the window may open just before one.
			polls := c.Minutes*60/r.PollSeconds + 1
			n := calls[routeJobs] * c.Minutes
			row(t, fmt.Sprintf("listings of jobs a poll interval, by %s of one server, %s", plural(c.Pools, "pool"), what), "1",
				fmt.Sprintf("%.2f (%.0f calls a minute in all)", n/(polls-1), sum(calls)), n <= polls)
		}
	}
	if q := r.Queue; q != nil {
		row(t, fmt.Sprintf("%d jobs at once: registrations at once, and children", q.Jobs), fmt.Sprintf("<= %d", q.Max),
			fmt.Sprintf("%d; %d", q.PeakRegistrations, q.PeakChildren), max(q.PeakRegistrations, q.PeakChildren) <= q.Max)
		row(t, fmt.Sprintf("%d jobs at once: run, each on one runner", q.Jobs), "all", fmt.Sprintf("%d in %.0f s, on %d runners", q.Once, q.Seconds, q.Runners), q.Once == q.Jobs)
	}
}

// each of both, in order.
func (c *Calls) each() iter.Seq2[string, map[string]float64] {
	return func(yield func(string, map[string]float64) bool) {
		_ = yield("idle", c.Idle) && yield("under load", c.Load)
	}
}

func (r *Runners) details(t *strings.Builder) {
	if r == nil {
		return
	}
	t.WriteString("\n## Runner pools\n")
	r.calls(t)
	if q := r.Queue; q != nil {
		fmt.Fprintf(t, "\nOf the long queue the first %d children were there %s after the look at it (p50; p95 %s). A runner cost %.1f calls of the server and %.0f requests to the API server of Kubernetes, those of its pool included.\n",
			q.Max, seconds(q.Spawn.P50), seconds(q.Spawn.P95), q.Calls, q.Requests)
	}
	r.circumstances(t, fmt.Sprintf("%d; pools poll every %.0f s", r.Rounds, r.PollSeconds))
}

// calls a minute, a column for each route that was called.
func (r *Runners) calls(t *strings.Builder) {
	if len(r.Calls) == 0 {
		return
	}
	called := map[string]bool{}
	for _, c := range r.Calls {
		for _, calls := range c.each() {
			for route := range calls {
				called[route] = true
			}
		}
	}
	routes := slices.Sorted(maps.Keys(called))
	t.WriteString("\nCalls of the server's API a minute:\n\n| pools | | jobs run | " + strings.Join(routes, " | ") + " | in all |\n|---|---|---|---|" + strings.Repeat("---|", len(routes)) + "\n")
	for _, c := range r.Calls {
		for what, calls := range c.each() {
			ran := 0
			if what != "idle" {
				ran = c.Jobs
			}
			fmt.Fprintf(t, "| %d | %s | %d |", c.Pools, what, ran)
			for _, route := range routes {
				fmt.Fprintf(t, " %.1f |", calls[route])
			}
			fmt.Fprintf(t, " %.1f |\n", sum(calls))
		}
	}
}

func sum(calls map[string]float64) (all float64) {
	for _, n := range calls {
		all += n
	}
	return all
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
