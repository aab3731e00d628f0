package faults

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/faults/proxy"
	"github.com/steading-dev/steading/test/harness"
)

// A life of one environment, in which something fails in each operation that has a kill.
type life struct {
	story *story
	// name of the environment, and of the context if it has one of its own. What a request is about is told by it.
	name   string
	kills  map[operation]kill
	struck *table

	// counted are the requests that came, and missed the kills whose request did not.
	counted counts
	missed  map[operation]kill

	environment *steading.Environment
	// cluster that the environment runs on.
	cluster client.Client
	uid     string
}

// A blow is a kill that is waited for.
type blow struct {
	kill
	mu sync.Mutex
	at *proxy.Request
}

// request at which it happened, nil if it did not.
func (b *blow) request() *proxy.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

// dealt is no error once it happened.
func (b *blow) dealt(context.Context) error {
	if b.request() == nil {
		return errors.New("its request is not answered")
	}
	return nil
}

// during an operation, from its beginning until it is done, something fails.
func (l *life) during(t *testing.T, o operation, begin, done func()) {
	t.Helper()
	k, planned := l.kills[o]
	b := &blow{kill: k}
	if planned {
		front := fronts[asker(k.target)]
		front.Arm(l.fault(t, b))
		defer front.Arm(nil)
	}
	for _, f := range fronts {
		f.Record()
	}
	failed := true
	defer func() {
		if failed && planned {
			t.Logf("%s, %s: %s (%v)", l.name, o, k, b.request())
		}
	}()
	started := time.Now()
	begin()
	done()
	failed = false
	l.count(o)
	took := time.Since(started).Seconds()
	if !planned {
		t.Logf("%s: done after %.1fs, requests %v", o, took, l.counted[o])
		return
	}
	fronts[asker(k.target)].Arm(nil)
	if l.counted[o][asker(k.target)] >= k.k {
		// The request came, if as one of the last. What happens after it is answered is waited for.
		harness.Eventually(t, "what fails at the "+string(o)+"'s end", b.dealt)
	}
	l.judge(o, b)
	t.Logf("%s: %s: %v; done after %.1fs, requests %v", o, k, b.request(), took, l.counted[o])
	l.waitAlive(t, process(k.target))
}

// fault that deals the blow.
func (l *life) fault(t *testing.T, b *blow) *proxy.Fault {
	t.Helper()
	return &proxy.Fault{
		Match: func(q proxy.Request) bool { return l.concerns(asker(b.target), q) }, At: b.k, Before: b.before,
		// Whoever asks for the function's sake lives on, and so does the request.
		Cut: b.target != platform.Function,
		Do: func(q proxy.Request) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.at = &q
			if process(b.target) == "" {
				return
			}
			if err := suite.Plane.Supervisor.Kill(process(b.target)); err != nil {
				t.Errorf("cannot kill: %v", err)
			}
		},
	}
}

// count the requests that came since the operation began.
func (l *life) count(o operation) {
	if l.counted == nil {
		l.counted = counts{}
	}
	l.counted[o] = map[string]int{}
	for name, f := range fronts {
		for _, q := range f.Record() {
			if l.concerns(name, q) {
				l.counted[o][name]++
			}
		}
	}
}

// concerns reports whether a request at a front is about this life. At the edge all are: nobody else has anything there.
func (l *life) concerns(front string, q proxy.Request) bool {
	return front == edge || q.About(l.name)
}

// judge whether the blow was dealt.
func (l *life) judge(o operation, b *blow) {
	dealt := b.request() != nil
	l.struck.add(b.target, o, dealt)
	if !dealt {
		if l.missed == nil {
			l.missed = map[operation]kill{}
		}
		l.missed[o] = b.kill
	}
}

// waitAlive until a process that was killed is there again.
func (l *life) waitAlive(t *testing.T, process string) {
	t.Helper()
	if process == "" {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), harness.Within)
	defer cancel()
	if err := suite.Plane.Supervisor.WaitReady(ctx, process); err != nil {
		t.Fatal(err)
	}
}

func (l *life) change(t *testing.T, edit func(*steading.Environment)) {
	t.Helper()
	harness.Change(t, &suite, l.environment, edit)
}

func (l *life) namespace() string { return names.EnvironmentNamespace(l.story.tenant, l.name) }

// host of the environment's one service.
func (l *life) host() string { return names.Host("mcp", l.story.tenant, l.name, zone) }
