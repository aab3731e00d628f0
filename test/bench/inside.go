package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/bench/figures"
	"github.com/steading-dev/steading/test/harness"
)

const (
	// tenant has the environments that are measured, and idleTenant those that are idle.
	tenant, idleTenant = "measured", "idle"
	// look is how often a state is looked at. It is what a latency may be off by.
	look = 20 * time.Millisecond
	// patience is how long anything may take.
	patience = 30 * time.Minute
)

// A bench is a platform, and how many idle environments it has.
type bench struct {
	*platform.Platform
	admin   client.Client
	outside *outside
	idle    int
	next    int
	// tokens that each environment made one at a time has cost, since they were last told.
	tokens []float64
}

func newBench(ctx context.Context, p *platform.Platform) (*bench, error) {
	admin, err := harness.Client(p.Plane.Config())
	if err != nil {
		return nil, err
	}
	b := &bench{Platform: p, admin: admin}
	if b.outside, err = newOutside(p.Plane.Config(), p.Registry.Host()); err != nil {
		return nil, err
	}
	for _, name := range []string{tenant, idleTenant} {
		if err := makeTenant(ctx, admin, name); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// makeTenant makes a tenant that may have anything, and waits until it is ready.
func makeTenant(ctx context.Context, admin client.Client, name string) error {
	x := harness.Tenant(name, steading.TenantSpec{Quota: steading.Quota{
		MaxEnvironments: ptr.To(int32(10000)), PerEnvironment: steading.MustResources("16", "36Gi", "72Gi"), Total: steading.MustResources("100000", "100000Gi", "100000Gi"),
	}})
	if err := admin.Create(ctx, x); err != nil {
		return err
	}
	return eventually(ctx, "tenant "+name+" ready", func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(x), x)
		return x.Status.Phase == steading.TenantReady, err
	})
}

// latencies of creating and deleting, one at a time, outside and inside by turns.
func (b *bench) latencies(ctx context.Context, idle, rounds int) (ready, gone figures.Latency, err error) {
	say("one at a time with %d idle environments, %d rounds", idle, rounds)
	type series struct{ inside, outside []time.Duration }
	var up, down series
	for range rounds {
		b.next++
		name := fmt.Sprintf("e%d", b.next)
		for _, step := range []struct {
			to *[]time.Duration
			do func(context.Context, string) error
		}{
			{&up.outside, b.outside.create}, {&up.inside, b.counted}, {&down.outside, b.outside.remove}, {&down.inside, b.remove},
		} {
			start := time.Now()
			if err := step.do(ctx, name); err != nil {
				return ready, gone, err
			}
			*step.to = append(*step.to, time.Since(start))
		}
	}
	ready, gone = figures.LatencyOf(idle, up.inside, up.outside), figures.LatencyOf(idle, down.inside, down.outside)
	say("ready: p95 %.2f s, outside %.2f s; gone: p95 %.2f s, outside %.2f s", ready.Platform.P95, ready.Outside.P95, gone.Platform.P95, gone.Outside.P95)
	return ready, gone, nil
}

// counted is create, and counts what that costs.
func (b *bench) counted(ctx context.Context, name string) error {
	before, err := b.sum(ctx, "crossplane", compositeTokens, environments)
	if err != nil {
		return err
	}
	if err := b.create(ctx, name); err != nil {
		return err
	}
	after, err := b.sum(ctx, "crossplane", compositeTokens, environments)
	b.tokens = append(b.tokens, after-before)
	return err
}

// spent tokens, by environment, since this was last asked for.
func (b *bench) spent(idle int) figures.Tokens {
	t := figures.Tokens{Idle: idle}
	for _, n := range b.tokens {
		t.Mean += n / float64(len(b.tokens))
		t.Max = max(t.Max, n)
	}
	b.tokens = nil
	say("making an environment costs %.0f tokens, at most %.0f", t.Mean, t.Max)
	return t
}

// create an environment and wait until it is ready.
func (b *bench) create(ctx context.Context, name string) error {
	e := harness.Environment(tenant, name)
	if err := b.admin.Create(ctx, e); err != nil {
		return err
	}
	return b.waitReady(ctx, e)
}

func (b *bench) waitReady(ctx context.Context, e *steading.Environment) error {
	return eventually(ctx, "environment "+e.Name+" ready", func(ctx context.Context) (bool, error) {
		err := b.admin.Get(ctx, client.ObjectKeyFromObject(e), e)
		return harness.Ready(e), err
	})
}

// remove an environment and wait until it is gone.
func (b *bench) remove(ctx context.Context, name string) error {
	e := harness.Environment(tenant, name)
	if err := b.admin.Delete(ctx, e); err != nil {
		return err
	}
	return eventually(ctx, "environment "+name+" gone", func(ctx context.Context) (bool, error) {
		err := b.admin.Get(ctx, client.ObjectKeyFromObject(e), e)
		return err != nil, client.IgnoreNotFound(err)
	})
}

// burst makes so many environments at once, outside first. What it makes inside stays, idle.
func (b *bench) burst(ctx context.Context, n int) (figures.Burst, error) {
	say("a burst of %d outside", n)
	outside, requests, err := b.outside.burst(ctx, n)
	if err != nil {
		return figures.Burst{}, err
	}
	say("a burst of %d took %.1f s outside; now on the platform", n, outside.Seconds())
	opened, err := b.breakers(ctx)
	if err != nil {
		return figures.Burst{}, err
	}
	before, err := audited(b.Plane)
	if err != nil {
		return figures.Burst{}, err
	}
	start := time.Now()
	err = b.grow(ctx, n)
	inside := time.Since(start)
	if err != nil {
		return figures.Burst{}, err
	}
	sent, err := requestsSince(b.Plane, before)
	if err != nil {
		return figures.Burst{}, err
	}
	each := byEnvironment(sent, n)
	each.Outside = requests
	now, err := b.breakers(ctx)
	say("a burst of %d took %.1f s on the platform, %d breakers opened", n, inside.Seconds(), now-opened)
	return figures.Burst{Environments: n, Idle: b.idle - n, Platform: inside.Seconds(), Outside: outside.Seconds(), Ratio: outside.Seconds() / inside.Seconds(), Breakers: now - opened, Requests: each}, err
}

// grow by so many idle environments, made at once, and wait until they are ready.
func (b *bench) grow(ctx context.Context, n int) error {
	err := together(n, func(i int) error {
		return b.admin.Create(ctx, harness.Environment(idleTenant, fmt.Sprintf("i%d", b.idle+i)))
	})
	if err != nil {
		return err
	}
	// Until the last is ready: to list all of them, again and again, would be a good part of the API server's work.
	for i := range n {
		if err := b.waitReady(ctx, harness.Environment(idleTenant, fmt.Sprintf("i%d", b.idle+i))); err != nil {
			return err
		}
	}
	b.idle += n
	return nil
}

// fill up to so many idle environments.
func (b *bench) fill(ctx context.Context, idle int) error {
	for b.idle < idle {
		if err := b.grow(ctx, min(idle-b.idle, burstSize)); err != nil {
			return err
		}
		say("%d of %d idle environments are ready", b.idle, idle)
	}
	return nil
}

// memory that the provider has grown by.
func (b *bench) memory(ctx context.Context, base float64) (figures.Memory, error) {
	have, err := b.providerMemory()
	if err != nil {
		return figures.Memory{}, err
	}
	n := 0
	for _, l := range []client.ObjectList{&runtimev1.PlacementList{}, &runtimev1.BoundaryList{}, &runtimev1.ReleaseList{}, &runtimev1.EdgeList{}} {
		if err := b.admin.List(ctx, l, client.InNamespace(names.SystemNamespace)); err != nil {
			return figures.Memory{}, err
		}
		n += count(l)
	}
	return figures.Memory{Environments: b.idle, ManagedResources: n, BaseMiB: base / mebi, MiB: have / mebi, KiBEach: (have - base) / 1024 / float64(n)}, nil
}

func count(l client.ObjectList) int {
	switch l := l.(type) {
	case *runtimev1.PlacementList:
		return len(l.Items)
	case *runtimev1.BoundaryList:
		return len(l.Items)
	case *runtimev1.ReleaseList:
		return len(l.Items)
	case *runtimev1.EdgeList:
		return len(l.Items)
	default:
		return 0
	}
}

// eventually waits until check says so.
func eventually(ctx context.Context, what string, check func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		done, err := check(ctx)
		if done && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s: %w", what, patience, ctx.Err())
		case <-time.After(look):
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}
