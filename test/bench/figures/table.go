package figures

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Goals of the platform. What is measured is held against them.
const (
	goalReady    = 2.0  // seconds, p95
	goalGone     = 3.0  // seconds, p95
	goalBurst    = 0.5  // of the throughput outside
	goalTokens   = 50.0 // of Crossplane's breaker
	goalFunction = 2.0  // milliseconds, p99
	goalMemory   = 50.0 // KiB a managed resource
	goalSpawn    = 0.3  // seconds, p95
)

// Markdown writes the tables of docs/performance.md.
func (r *Run) Markdown(w io.Writer) error {
	t := &strings.Builder{}
	r.goals(t)
	r.latencies(t, "From claim applied to Environment ready", r.Ready)
	r.latencies(t, "From claim deleted to claim gone", r.Gone)
	r.requests(t)
	if r.Date != "" {
		t.WriteString("\n## Circumstances\n")
		r.circumstances(t, fmt.Sprintf("%d of each latency", r.Sizes.Rounds))
	}
	r.Runners.details(t)
	_, err := io.WriteString(w, t.String())
	return err
}

func (r *Run) goals(t *strings.Builder) {
	t.WriteString("| what | goal | measured | |\n|---|---|---|---|\n")
	for _, l := range r.Ready {
		row(t, fmt.Sprintf("claim applied to Environment ready minus outside, %d idle, p95", l.Idle), "< 2 s", seconds(l.Added.P95), l.Added.P95 < goalReady)
	}
	for _, l := range r.Gone {
		row(t, fmt.Sprintf("claim deleted to claim gone minus outside, %d idle, p95", l.Idle), "< 3 s", seconds(l.Added.P95), l.Added.P95 < goalGone)
	}
	for _, k := range r.Tokens {
		row(t, fmt.Sprintf("tokens of Crossplane's breaker that making an environment costs, %d idle, at most", k.Idle), "<= 50", fmt.Sprintf("%.0f (mean %.0f)", k.Max, k.Mean), k.Max <= goalTokens)
	}
	for _, b := range r.Bursts {
		row(t, fmt.Sprintf("burst of %d, %d idle: throughput against the bare loop", b.Environments, b.Idle), ">= 0.5",
			fmt.Sprintf("%.2f (%s against %s; %d breakers opened)", b.Ratio, seconds(b.Platform), seconds(b.Outside), b.Breakers), b.Ratio >= goalBurst)
	}
	for _, q := range r.Quiet {
		row(t, fmt.Sprintf("%d environments idle for %.1f min: changed resourceVersions; breakers opened", q.Environments, r.Sizes.QuietMinutes), "0; 0",
			fmt.Sprintf("%d of %d objects; %d", q.Changed, q.Objects, q.Breakers), q.Changed == 0 && q.Breakers == 0)
	}
	if f := r.Function; f != nil {
		row(t, fmt.Sprintf("one function call, %d children, p99 in process", f.Children), "< 2 ms", fmt.Sprintf("%.2f ms", f.P99Milliseconds), f.P99Milliseconds < goalFunction)
	}
	for _, m := range r.Memory {
		row(t, fmt.Sprintf("provider memory above its base, %d managed resources", m.ManagedResources), "< 50 KiB each",
			fmt.Sprintf("%.0f KiB each (%.0f MiB, base %.0f MiB)", m.KiBEach, m.MiB, m.BaseMiB), m.KiBEach < goalMemory)
	}
	r.Runners.goals(t)
}

func row(t *strings.Builder, what, goal, have string, met bool) {
	verdict := "**missed**"
	if met {
		verdict = "met"
	}
	fmt.Fprintf(t, "| %s | %s | %s | %s |\n", what, goal, have, verdict)
}

func (r *Run) latencies(t *strings.Builder, title string, all []Latency) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(t, "\n## %s\n\n| idle | platform p50 | p95 | outside p50 | p95 | added p50 | p95 |\n|---|---|---|---|---|---|---|\n", title)
	for _, l := range all {
		fmt.Fprintf(t, "| %d | %s | %s | %s | %s | %s | %s |\n", l.Idle, seconds(l.Platform.P50), seconds(l.Platform.P95),
			seconds(l.Outside.P50), seconds(l.Outside.P95), seconds(l.Added.P50), seconds(l.Added.P95))
	}
}

func (r *Run) requests(t *strings.Builder) {
	if !slices.ContainsFunc(r.Bursts, func(b Burst) bool { return b.Requests.Crossplane > 0 }) {
		return // Older figures do not have them.
	}
	t.WriteString("\n## What a burst asks of the API server\n\nRequests for each environment, watches aside. Most of the time that a burst takes is the API server's.\n\n")
	t.WriteString("| burst of | idle | Crossplane | provider-runtime | Helm, as deployer | together | the bare loop |\n|---|---|---|---|---|---|---|\n")
	for _, b := range r.Bursts {
		q := b.Requests
		fmt.Fprintf(t, "| %d | %d | %.0f | %.0f | %.0f | %.0f | %.0f |\n", b.Environments, b.Idle, q.Crossplane, q.Provider, q.Helm, q.Crossplane+q.Provider+q.Helm, q.Outside)
	}
}

func (c *Circumstances) circumstances(t *strings.Builder, rounds string) {
	t.WriteString("\n| | |\n|---|---|\n")
	fmt.Fprintf(t, "| date | %s |\n", c.Date)
	fmt.Fprintf(t, "| machine | %s, %d cores, %.0f GiB, Linux %s |\n", c.Machine.CPU, c.Machine.Cores, c.Machine.MemoryGiB, c.Machine.Kernel)
	fmt.Fprintf(t, "| load average | %s at the start, %s at the end |\n", c.Machine.LoadAtStart, c.Machine.LoadAtEnd)
	fmt.Fprintf(t, "| rounds | %s |\n", rounds)
	for _, name := range slices.Sorted(maps.Keys(c.Versions)) {
		fmt.Fprintf(t, "| %s | %s |\n", name, c.Versions[name])
	}
}

func seconds(s float64) string { return fmt.Sprintf("%.2f s", s) }
