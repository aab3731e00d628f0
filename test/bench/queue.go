package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/test/bench/figures"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

// A queue is a Forgejo that remembers when it first told of each job in its queue.
type queue struct {
	http.Handler

	mu    sync.Mutex
	first map[int64]time.Time
}

func newQueue(h http.Handler) *queue { return &queue{Handler: h, first: map[int64]time.Time{}} }

// ServeHTTP answers, and notes which jobs were in the answer.
func (q *queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/runners/jobs") {
		q.Handler.ServeHTTP(w, r)
		return
	}
	c := &copied{ResponseWriter: w}
	q.Handler.ServeHTTP(c, r)
	now := time.Now()
	var jobs []struct {
		ID int64 `json:"id"`
	}
	if json.Unmarshal(c.body.Bytes(), &jobs) != nil {
		return // An error, and no list.
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range jobs {
		if _, ok := q.first[j.ID]; !ok {
			q.first[j.ID] = now
		}
	}
}

// told is when a job was first in an answer.
func (q *queue) told(job int64) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.first[job]
}

// copied is an answer whose body is kept.
type copied struct {
	http.ResponseWriter
	body bytes.Buffer
}

// Write to the answer and its copy.
func (c *copied) Write(b []byte) (int, error) {
	c.body.Write(b)
	return c.ResponseWriter.Write(b)
}

// long is a queue that is longer than the pool's maximum.
func (b *runnersBench) long(ctx context.Context) (*figures.Queue, error) {
	n, most := b.options.Jobs, b.options.MaxRunners
	if n == 0 {
		return nil, nil //nolint:nilnil // Nothing to measure.
	}
	say("%d jobs at once, for %d runners at most", n, most)
	if err := b.resize(ctx, most); err != nil {
		return nil, err
	}
	b.forgejo.ResetCounts()
	b.children.reset()
	before, err := audited(b.Plane)
	if err != nil {
		return nil, err
	}
	made, start, ids := b.children.count(), time.Now(), make([]int64, n)
	for i := range ids {
		if ids[i], err = b.job(0); err != nil {
			return nil, err
		}
	}
	if err := b.idle(ctx); err != nil {
		return nil, err
	}
	q := &figures.Queue{Jobs: n, Max: most, Seconds: time.Since(start).Seconds()}
	if err := pause(ctx, verdicts); err != nil {
		return nil, err
	}
	sent, err := requestsSince(b.Plane, before)
	if err != nil {
		return nil, err
	}
	all := b.children.since(made)
	q.Runners, q.Once = len(all), b.once(ids)
	q.PeakRegistrations, q.PeakChildren = b.forgejo.PeakRegistrations(), b.children.peak()
	q.Calls, q.Requests = sum(b.called())/float64(len(all)), float64(sent[account{names.SystemNamespace, names.ProviderForgejo}])/float64(len(all))
	q.Spawn = b.spawned(ids, all[:min(most, n, len(all))])
	say("%d of %d jobs ran once in %.1f s, on %d runners; at once %d registrations, %d children; children p50 %.2f s, p95 %.2f s after the look; %.1f calls and %.0f requests a runner",
		q.Once, n, q.Seconds, q.Runners, q.PeakRegistrations, q.PeakChildren, q.Spawn.P50, q.Spawn.P95, q.Calls, q.Requests)
	return q, errors.Join(b.quiet(ctx), b.resize(ctx, loadedMax))
}

// resize the first pool.
func (b *runnersBench) resize(ctx context.Context, most int) error {
	pool, err := b.pool(0)
	if err != nil {
		return err
	}
	if err := b.admin.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
		return err
	}
	before := client.MergeFrom(pool.DeepCopy())
	pool.Spec.MaxRunners = int32(most) //nolint:gosec // At most 1000.
	if err := b.admin.Patch(ctx, pool, before); err != nil {
		return err
	}
	return b.eachReady(ctx)
}

// once is how many of the jobs succeeded and were given to one runner only.
func (b *runnersBench) once(ids []int64) (n int) {
	of := map[int64]bool{}
	for _, id := range ids {
		of[id] = true
	}
	for _, j := range b.forgejo.Jobs() {
		if of[j.ID] && j.Status == forgejo.StatusSuccess && len(j.Runs) == 1 {
			n++
		}
	}
	return n
}

// spawned is how long after the first look at the queue children were there.
func (b *runnersBench) spawned(ids []int64, children []time.Time) figures.Percentiles {
	look := b.queue.told(ids[0])
	took := make([]time.Duration, len(children))
	for i, at := range children {
		took[i] = at.Sub(look)
	}
	return figures.PercentilesOf(took)
}

// calls of the API by n pools, idle and under load.
func (b *runnersBench) calls(ctx context.Context, n int) (figures.Calls, error) {
	c := figures.Calls{Pools: n, Minutes: b.options.Window.Minutes()}
	if err := b.grow(ctx, n); err != nil {
		return c, err
	}
	if err := b.quiet(ctx); err != nil {
		return c, err
	}
	say("%d pools, counting calls for %s", n, b.options.Window)
	var err error
	if c.Idle, err = b.counted(ctx); err != nil {
		return c, err
	}
	loaded, unload := context.WithCancel(ctx)
	fed := make(chan error, 1)
	go func() { fed <- b.feed(loaded) }()
	start := time.Now()
	c.Load, err = b.counted(ctx)
	unload()
	if err := errors.Join(err, <-fed); err != nil {
		return c, err
	}
	for _, j := range b.forgejo.Jobs() {
		if len(j.Runs) > 0 && j.Runs[0].Stopped.After(start.Add(settling)) {
			c.Jobs++
		}
	}
	say("%.0f calls a minute idle, %.0f under load of %d jobs", sum(c.Idle), sum(c.Load), c.Jobs)
	return c, b.quiet(ctx)
}

// feed the pools with jobs in turn, at a pace, until ctx is done.
func (b *runnersBench) feed(ctx context.Context) error {
	ticks := time.NewTicker(pace)
	defer ticks.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			if _, err := b.job(i % b.pools); err != nil {
				return err
			}
		}
	}
}

// counted are the calls a minute, once what was done before has come to rest.
func (b *runnersBench) counted(ctx context.Context) (map[string]float64, error) {
	if err := pause(ctx, settling); err != nil {
		return nil, err
	}
	b.forgejo.ResetCounts()
	if err := pause(ctx, b.options.Window); err != nil {
		return nil, err
	}
	calls := b.called()
	for route := range calls {
		calls[route] /= b.options.Window.Minutes()
	}
	return calls, nil
}

// called routes of the API, without those of the runners' own protocol.
func (b *runnersBench) called() map[string]float64 {
	calls := map[string]float64{}
	for route, n := range b.forgejo.Calls() {
		switch route {
		case forgejo.RouteDeclare, forgejo.RouteFetchTask, forgejo.RouteFetchSingleTask, forgejo.RouteUpdateTask, forgejo.RouteUpdateLog:
		default:
			calls[string(route)] = float64(n)
		}
	}
	return calls
}

func sum(calls map[string]float64) (all float64) {
	for _, n := range calls {
		all += n
	}
	return all
}
