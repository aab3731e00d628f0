package faults

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/faults/proxy"
	"github.com/steading-dev/steading/test/harness"
)

const (
	tenant = "faults"
	first  = "1.4.2"
	second = "1.4.3"
)

// TestKilledAtAnyRequest lives the lives of the seeds.
func TestKilledAtAnyRequest(t *testing.T) {
	all := seeds(t)
	t.Logf("seeds %v; repeat one with FAULT_SEEDS=<seed>", all)
	suite.NewTenant(t, tenant, steading.TenantSpec{})
	struck := newTable()
	t.Cleanup(func() {
		t.Logf("what failed, by target and operation, and how often the request did not come:\n%s", struck)
	})
	for _, seed := range all {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			l := &life{seed: seed, kills: killsOf(seed), struck: struck, environment: harness.Environment(tenant, fmt.Sprintf("seed%02d", seed))}
			l.live(t)
		})
	}
	if len(all) >= len(targets) {
		for _, cell := range struck.empty() {
			t.Errorf("nothing failed for %s", cell)
		}
	}
}

// A life of one environment, with a kill in each operation.
type life struct {
	seed        int
	kills       map[operation]kill
	struck      *table
	environment *steading.Environment
	uid         string
}

// live from creation to deletion, and look after each operation.
func (l *life) live(t *testing.T) {
	e := l.environment
	l.during(t, create, func() { suite.Create(t, e) }, func() { l.wantRunning(t, first) })
	l.uid = suite.CompositeUID(t, tenant, e.Name)
	usage := []runtimev1.Transition{runtimev1.TransitionProvisioned}
	suite.WantUsage(t, l.uid, usage...)

	l.during(t, upgrade, func() { l.change(t, func(e *steading.Environment) { e.Spec.Version = second }) }, func() { l.wantRunning(t, second) })
	usage = append(usage, runtimev1.TransitionProvisioned)
	suite.WantUsage(t, l.uid, usage...)

	l.during(t, stop, func() { l.change(t, func(e *steading.Environment) { e.Spec.State = steading.StateStopped }) }, func() { l.wantStopped(t, second) })
	usage = append(usage, runtimev1.TransitionStopped)
	suite.WantUsage(t, l.uid, usage...)

	l.during(t, start, func() { l.change(t, func(e *steading.Environment) { e.Spec.State = steading.StateRunning }) }, func() { l.wantRunning(t, second) })
	usage = append(usage, runtimev1.TransitionStarted)
	suite.WantUsage(t, l.uid, usage...)

	l.during(t, remove, func() { suite.Delete(t, e) }, func() { suite.WantGone(t, e) })
	l.wantNothing(t)
	suite.WantUsage(t, l.uid, append(usage, runtimev1.TransitionDeleted)...)
}

// during an operation, from its beginning until it is done, there is a kill.
func (l *life) during(t *testing.T, o operation, begin, done func()) {
	t.Helper()
	k := l.kills[o]
	front := fronts[asker(k.target)]
	var mu sync.Mutex
	var at *proxy.Request
	front.Arm(&proxy.Fault{
		Match: func(q proxy.Request) bool { return q.About(l.environment.Name) }, At: k.k, Before: k.before,
		// Whoever asks for the function's sake lives on, and so does the request.
		Cut: k.target != platform.Function,
		Do: func(q proxy.Request) {
			mu.Lock()
			defer mu.Unlock()
			at = &q
			if process(k.target) == "" {
				return
			}
			if err := suite.Plane.Supervisor.Kill(process(k.target)); err != nil {
				t.Errorf("cannot kill: %v", err)
			}
		},
	})
	for _, f := range fronts {
		f.Record()
	}
	started := time.Now()
	begin()
	failed := true
	defer func() {
		front.Arm(nil)
		if failed {
			t.Logf("seed %d, %s: %s (%v)", l.seed, o, k, at)
		}
	}()
	done()
	failed = false
	front.Arm(nil)
	mu.Lock()
	hit := at
	mu.Unlock()
	l.struck.add(k.target, o, hit != nil)
	what := "which did not come"
	if hit != nil {
		what = hit.String()
	}
	t.Logf("%s: %s: %s; done after %.1fs, %s", o, k, what, time.Since(started).Seconds(), l.counts())
	if process(k.target) == "" {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), harness.Within)
	defer cancel()
	if err := suite.Plane.Supervisor.WaitReady(ctx, process(k.target)); err != nil {
		t.Fatal(err)
	}
}

// counts are how many requests each has made.
func (l *life) counts() string {
	var counts []string
	for name, f := range fronts {
		n := 0
		for _, q := range f.Record() {
			if q.About(l.environment.Name) {
				n++
			}
		}
		counts = append(counts, fmt.Sprintf("%d requests of %s", n, name))
	}
	return strings.Join(counts, ", ")
}

func (l *life) change(t *testing.T, edit func(*steading.Environment)) {
	t.Helper()
	harness.Change(t, &suite, l.environment, edit)
}

func (l *life) namespace() string { return names.EnvironmentNamespace(tenant, l.environment.Name) }
