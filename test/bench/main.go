// Command bench measures the platform against its goals, on a local control plane of its own, and writes what it measured
// to docs/benchmarks.json. `go run ./test/docs/tables` makes docs/performance.md of it.
//
// Outside is what a bare Go loop takes for the same namespaces and Helm installs, in the same run. Nodes and pods are
// KWOK's, so that neither waits for images or containers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/bench/figures"
)

type options struct {
	Only    string         `enum:",environments,runners" default:"" help:"Measure only the environments or only the runners, and leave what was measured of the others as it is."`
	Rounds  int            `default:"20" help:"Rounds of each latency."`
	Idle    []int          `default:"0,100" help:"How many idle environments there are while one at a time is measured, a step each, rising."`
	Large   bool           `help:"Measure with 1,000 idle environments too."`
	Quiet   time.Duration  `default:"5m" help:"How long to leave the idle environments alone and look for what changes."`
	Runners runnersOptions `embed:""`
	Out     string         `default:"docs/benchmarks.json" help:"File to write what was measured to."`
}

// burstSize is how many environments are made at once at most: the API server of a small machine does not answer in time when
// the bare loop asks it for more. Where there are to be more idle ones, the first burst is measured and others follow.
const burstSize = 100

// The parts of a run.
const (
	onlyEnvironments = "environments"
	onlyRunners      = "runners"
)

func main() {
	o := &options{}
	k := kong.Parse(o, kong.Name("bench"), kong.Description("Measures the platform against its goals."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	k.FatalIfErrorf(o.run(ctx))
}

func (o *options) run(ctx context.Context) error {
	if err := o.valid(); err != nil {
		return err
	}
	before, err := o.before()
	if err != nil {
		return err
	}
	r := &figures.Run{Runners: before.Runners}
	if o.Only == onlyRunners {
		r = before
	} else {
		// Before anything else runs that would be in its way.
		say("measuring one call of the function")
		if r.Function, err = measureFunction(ctx); err != nil {
			return err
		}
	}
	p, err := platform.Start(ctx, platform.Options{Name: "bench", Progress: func(line string) { say("%s", line) }})
	if err != nil {
		return err
	}
	defer p.Stop() //nolint:errcheck // The process ends, and with it all that the platform runs.
	// Runners first: they leave nothing.
	if o.Only != onlyEnvironments {
		if r.Runners, err = o.measureRunners(ctx, p); err != nil {
			return err
		}
	}
	if o.Only != onlyRunners {
		if err := o.measureEnvironments(ctx, p, r); err != nil {
			return err
		}
	}
	return r.Write(o.Out)
}

func (o *options) valid() error {
	if o.Large {
		o.Idle = append(o.Idle, 1000)
	}
	if !slices.IsSorted(o.Idle) {
		return fmt.Errorf("cannot measure with %v idle environments: the numbers have to rise", o.Idle)
	}
	return o.Runners.valid()
}

// before is what was measured before, when only a part is measured now.
func (o *options) before() (*figures.Run, error) {
	if _, err := os.Stat(o.Out); o.Only == "" || errors.Is(err, fs.ErrNotExist) {
		return &figures.Run{}, nil
	}
	return figures.Read(o.Out)
}

// circumstances of what is measured now.
func circumstances(ctx context.Context, p *platform.Platform) (c figures.Circumstances, err error) {
	c.Date = time.Now().UTC().Format(time.DateOnly)
	if c.Machine, err = machine(); err != nil {
		return c, err
	}
	c.Versions, err = built(ctx, p)
	return c, err
}

// measureEnvironments on a platform without any.
func (o *options) measureEnvironments(ctx context.Context, p *platform.Platform, r *figures.Run) (err error) {
	r.Sizes = figures.Sizes{Rounds: o.Rounds, QuietMinutes: o.Quiet.Minutes()}
	if r.Circumstances, err = circumstances(ctx, p); err != nil {
		return err
	}
	b, err := newBench(ctx, p)
	if err != nil {
		return err
	}
	return o.measure(ctx, b, r)
}

// measure step by step: at each there are more idle environments. What was measured is written after each, since the last may
// take an hour.
func (o *options) measure(ctx context.Context, b *bench, r *figures.Run) error {
	say("warming up")
	if _, _, err := b.latencies(ctx, 0, 2); err != nil {
		return err
	}
	b.tokens = nil
	base, err := b.providerMemory()
	if err != nil {
		return err
	}
	for i, idle := range o.Idle {
		r.Sizes.Idle = o.Idle[:i+1]
		if more := min(idle-b.idle, burstSize); more > 0 {
			burst, err := b.burst(ctx, more)
			if err != nil {
				return err
			}
			r.Bursts = append(r.Bursts, burst)
		}
		if err := b.fill(ctx, idle); err != nil {
			return err
		}
		ready, gone, err := b.latencies(ctx, idle, o.Rounds)
		if err != nil {
			return err
		}
		r.Ready, r.Gone, r.Tokens = append(r.Ready, ready), append(r.Gone, gone), append(r.Tokens, b.spent(idle))
		if idle > 0 {
			quiet, err := b.quiet(ctx, o.Quiet)
			if err != nil {
				return err
			}
			memory, err := b.memory(ctx, base)
			if err != nil {
				return err
			}
			r.Quiet, r.Memory = append(r.Quiet, quiet), append(r.Memory, memory)
		}
		r.Machine.LoadAtEnd = loadAverage()
		if err := r.Write(o.Out); err != nil {
			return err
		}
	}
	return nil
}

var started = time.Now()

func say(format string, args ...any) {
	fmt.Printf("%6.1fs  %s\n", time.Since(started).Seconds(), fmt.Sprintf(format, args...))
}
