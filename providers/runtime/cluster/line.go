package cluster

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
)

// A state is what a line last saw of its endpoint.
type state struct {
	// tried is whether anything was seen yet.
	tried bool
	// problem is why the endpoint is not reached. Nil: it is.
	problem *UnreachedError
	answer
}

func (s state) up() bool { return s.tried && s.problem == nil }

func (s state) same(o state) bool {
	if s.tried != o.tried || s.answer != o.answer || (s.problem == nil) != (o.problem == nil) {
		return false
	}
	return s.problem == nil || *s.problem == *o.problem
}

// pace says how often a line tries.
type pace struct {
	// first and most time between two tries of an endpoint that is not reached.
	first, most time.Duration
	// blind is how often an endpoint is tried that lets nothing be watched.
	blind time.Duration
}

var usual = pace{first: time.Second, most: time.Minute, blind: 30 * time.Second}

// A line is held to one endpoint: it proves it, and then watches it, so that it is noticed when the connection breaks, when
// the server was upgraded and when the guard was changed.
type line struct {
	endpoint Endpoint
	pace     pace
	wake     func()
	cancel   context.CancelFunc

	mu     sync.Mutex
	seen   state
	kubers client.Client
}

// state that was last seen.
func (l *line) state() state {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// client for objects at the endpoint, made once.
func (l *line) client() (client.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kubers != nil {
		return l.kubers, nil
	}
	c, err := newGuardClient(l.endpoint.Config())
	if err != nil {
		return nil, err
	}
	l.kubers = c
	return c, nil
}

// run until ctx is done.
func (l *line) run(ctx context.Context) {
	c, err := l.endpoint.client()
	if err != nil {
		l.saw(state{tried: true, problem: problemOf(err)})
		return
	}
	defer c.CloseIdleConnections()
	failed, ended := l.pace.first, l.pace.first // how long to wait
	for ctx.Err() == nil {
		s := l.look(ctx, c)
		if ctx.Err() != nil {
			return
		}
		l.saw(s)
		if !s.up() {
			c.CloseIdleConnections()
			pause(ctx, jittered(failed))
			failed = min(2*failed, l.pace.most)
			continue
		}
		failed = l.pace.first
		began := time.Now()
		l.watch(ctx, c)
		if time.Since(began) > l.pace.most {
			ended = l.pace.first
			continue
		}
		// It ended early. A server that does so each time is not to be asked all the time.
		pause(ctx, jittered(ended))
		ended = min(2*ended, l.pace.blind)
	}
}

// look at the endpoint. One that was up a moment ago is asked twice before it counts as down.
func (l *line) look(ctx context.Context, c *http.Client) state {
	a, err := l.endpoint.probe(ctx, c)
	if err != nil && l.state().up() {
		pause(ctx, l.pace.first)
		a, err = l.endpoint.probe(ctx, c)
	}
	if err != nil {
		return state{tried: true, problem: problemOf(err)}
	}
	return state{tried: true, answer: a}
}

// saw notes what was seen, and wakes the controller when that is new. The version of a server that does not answer any more
// is still the last one seen.
func (l *line) saw(s state) {
	l.mu.Lock()
	if s.problem != nil {
		s.answer = l.seen.answer
	}
	changed := !l.seen.same(s)
	l.seen = s
	l.mu.Unlock()
	if changed {
		l.wake()
	}
}

// What is watched, in order of preference: the guard policies, so that it is noticed when somebody changes them, or, where
// they may not be watched, one namespace that every cluster has.
var watched = []string{
	"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?" + url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "labelSelector": {names.LabelManagedBy + "=" + names.ManagedBy}}.Encode(),
	"/api/v1/namespaces?" + url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "fieldSelector": {"metadata.name=kube-system"}}.Encode(),
}

// watch returns when the connection breaks, or the server ends it.
func (l *line) watch(ctx context.Context, c *http.Client) {
	for i, path := range watched {
		res, err := l.open(ctx, c, path)
		if err != nil {
			return
		}
		if res.StatusCode != http.StatusOK {
			res.Body.Close() //nolint:errcheck,gosec // Nothing of it is wanted.
			continue
		}
		l.read(res.Body, i == 0)
		return
	}
	pause(ctx, jittered(l.pace.blind))
}

func (l *line) open(ctx context.Context, c *http.Client, path string) (*http.Response, error) {
	req, err := l.endpoint.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	return c.Do(req)
}

// read a stream of events to its end. What is in them does not matter: the controller looks for itself.
func (l *line) read(stream io.ReadCloser, guard bool) {
	defer stream.Close() //nolint:errcheck // It has ended.
	buf := make([]byte, 32<<10)
	for {
		n, err := stream.Read(buf)
		if n > 0 && guard {
			l.wake()
		}
		if err != nil {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// jittered by a tenth.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d)) //nolint:gosec // Jitter is no secret.
}
