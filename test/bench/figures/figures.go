// Package figures is what the benchmarks measured, as it is kept in docs/benchmarks.json, and the table that is made of it.
package figures

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// Run is one run of the benchmarks. What it did not measure is absent.
type Run struct {
	// Circumstances of all but the runners.
	Circumstances
	// Sizes of the run.
	Sizes Sizes `json:"sizes"`

	// Ready is from a claim applied to Environment ready, one at a time.
	Ready []Latency `json:"ready"`
	// Gone is from a claim deleted to claim gone, one at a time.
	Gone []Latency `json:"gone"`
	// Tokens of Crossplane's breaker that making one environment costs its composite.
	Tokens []Tokens `json:"tokens"`
	// Bursts of environments that are applied at once.
	Bursts []Burst `json:"bursts"`
	// Quiet is what changes while nothing happens.
	Quiet []Quiet `json:"quiet"`
	// Function is one call of the function in process.
	Function *Function `json:"function,omitempty"`
	// Memory of the provider.
	Memory []Memory `json:"memory"`

	// Runners is what was measured of runner pools.
	Runners *Runners `json:"runners,omitempty"`
}

// Circumstances of what was measured.
type Circumstances struct {
	// Date of the run.
	Date string `json:"date,omitempty"`
	// Machine that it ran on.
	Machine Machine `json:"machine"`
	// Versions of what was measured, by name.
	Versions map[string]string `json:"versions,omitempty"`
}

// Machine that a run ran on.
type Machine struct {
	CPU         string  `json:"cpu"`
	Cores       int     `json:"cores"`
	MemoryGiB   float64 `json:"memoryGiB"`
	Kernel      string  `json:"kernel"`
	LoadAtStart string  `json:"loadAtStart"`
	LoadAtEnd   string  `json:"loadAtEnd"`
}

// Sizes of a run.
type Sizes struct {
	// Rounds of each latency.
	Rounds int `json:"rounds"`
	// Idle environments that were there, one number a step.
	Idle []int `json:"idle"`
	// QuietMinutes is how long nothing was done.
	QuietMinutes float64 `json:"quietMinutes"`
}

// A Latency is how long the platform took, and how long the same took outside it, in seconds. Each round did one after the
// other; Added is the difference in a round.
type Latency struct {
	Idle     int         `json:"idle"`
	Platform Percentiles `json:"platform"`
	Outside  Percentiles `json:"outside"`
	Added    Percentiles `json:"added"`
}

// Percentiles in seconds.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
}

// Tokens of the breaker, of which a composite has 100, and gets one a second.
type Tokens struct {
	Idle int     `json:"idle"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// A Burst is how long it took until all of so many were ready, in seconds.
type Burst struct {
	Environments int `json:"environments"`
	// Idle environments that were there before.
	Idle     int     `json:"idle"`
	Platform float64 `json:"platform"`
	Outside  float64 `json:"outside"`
	// Ratio of the throughputs, the platform's to that outside.
	Ratio float64 `json:"ratio"`
	// Breakers of composites that opened meanwhile.
	Breakers int `json:"breakers"`
	// Requests to the API server, for each environment.
	Requests Requests `json:"requests"`
}

// Requests to the API server, watches aside, by who sent them.
type Requests struct {
	// Crossplane's, which turns claims into managed resources and reports back.
	Crossplane float64 `json:"crossplane"`
	// Provider is provider-runtime.
	Provider float64 `json:"provider"`
	// Helm on the platform, as the environments' deployers.
	Helm float64 `json:"helm"`
	// Outside are all that the bare loop sent.
	Outside float64 `json:"outside"`
}

// Quiet is what changed while nothing was done.
type Quiet struct {
	Environments int `json:"environments"`
	Objects      int `json:"objects"`
	// Changed resourceVersions of the objects.
	Changed int `json:"changed"`
	// Breakers that opened: Crossplane's of composites, and the provider's of targets.
	Breakers int `json:"breakers"`
	// Examples of what changed.
	Examples []string `json:"examples,omitempty"`
}

// Function is a call of the function in process.
type Function struct {
	Children        int     `json:"children"`
	P99Milliseconds float64 `json:"p99Milliseconds"`
}

// Memory of the provider's process.
type Memory struct {
	Environments     int     `json:"environments"`
	ManagedResources int     `json:"managedResources"`
	BaseMiB          float64 `json:"baseMiB"`
	MiB              float64 `json:"MiB"`
	// KiBEach is what it has grown by for each managed resource.
	KiBEach float64 `json:"KiBEach"`
}

// LatencyOf what the platform took in each round, and what was taken outside.
func LatencyOf(idle int, platform, outside []time.Duration) Latency {
	added := make([]time.Duration, len(platform))
	for i := range platform {
		added[i] = platform[i] - outside[i]
	}
	return Latency{Idle: idle, Platform: PercentilesOf(platform), Outside: PercentilesOf(outside), Added: PercentilesOf(added)}
}

// PercentilesOf durations.
func PercentilesOf(d []time.Duration) Percentiles {
	return Percentiles{P50: percentile(d, 50), P95: percentile(d, 95)}
}

// percentile by nearest rank.
func percentile(d []time.Duration, p int) float64 {
	if len(d) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d))
	rank := (len(s)*p + 99) / 100
	return s[max(rank, 1)-1].Seconds()
}

// Read a run.
func Read(path string) (*Run, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // The caller's own file.
	if err != nil {
		return nil, fmt.Errorf("cannot read figures: %w", err)
	}
	r := &Run{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("cannot read figures in %s: %w", path, err)
	}
	return r, nil
}

// Write a run.
func (r *Run) Write(path string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write figures: %w", err)
	}
	if err := os.WriteFile(path, append(raw, '\n'), 0o644); err != nil { //nolint:gosec // For everybody to read.
		return fmt.Errorf("cannot write figures: %w", err)
	}
	return nil
}
