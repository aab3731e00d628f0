package placement

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

// registry answers the resolver, one question at a time when told to.
type registry struct {
	mu     sync.Mutex
	digest string
	err    error
	asked  int
	woken  chan string
}

func (r *registry) ask(context.Context, string, ChartSource) (ResolvedChart, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return ResolvedChart{Digest: r.digest, Floor: testFloor(false), DockerFloor: testFloor(true)}, r.err
}

func (r *registry) says(digest string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.digest, r.err = digest, err
}

func (r *registry) questions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

func (r *registry) wakes(t *testing.T) {
	t.Helper()
	select {
	case have := <-r.woken:
		if have != "acme" {
			t.Errorf("woke %s, not acme", have)
		}
	case <-time.After(time.Minute):
		t.Error("acme was not woken")
	}
}

func resolving(t *testing.T) (*Resolver, *registry, *clocktesting.FakeClock) {
	t.Helper()
	reg := &registry{woken: make(chan string, 10)}
	clock := clocktesting.NewFakeClock(epoch)
	r := NewResolver(reg.ask, func(tenant string) { reg.woken <- tenant }, clock)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = r.Start(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return r, reg, clock
}

var runtimeChart = ChartSource{ChartSource: v1alpha1.ChartSource{Repository: "registry.example/charts/runtime", Version: "1.0.0"}}

// eventually waits for what happens in the background, stepping the clock as it waits.
func eventually(t *testing.T, clock *clocktesting.FakeClock, step time.Duration, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		if step > 0 {
			clock.Step(step)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s did not happen", what)
}

func TestResolverNeverBlocksAndWakes(t *testing.T) {
	r, reg, _ := resolving(t)
	reg.says("sha256:aa", nil)
	if _, err := r.Resolve("acme", runtimeChart); !errors.Is(err, ErrAsking) {
		t.Fatalf("error %v", err)
	}
	reg.wakes(t)
	have, err := r.Resolve("acme", runtimeChart)
	if err != nil {
		t.Fatal(err)
	}
	want := ResolvedChart{Digest: "sha256:aa", Floor: testFloor(false), DockerFloor: testFloor(true)}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
	for range 10 {
		_, _ = r.Resolve("globex", runtimeChart)
	}
	if n := reg.questions(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestResolverTellsTheRegistrysErrorOnceAndRetries(t *testing.T) {
	r, reg, clock := resolving(t)
	reg.says("", errors.New("401 Unauthorized"))
	_, _ = r.Resolve("acme", runtimeChart)
	reg.wakes(t)
	if _, err := r.Resolve("acme", runtimeChart); err == nil || err.Error() != "401 Unauthorized" {
		t.Errorf("error %v", err)
	}
	eventually(t, clock, time.Second, "a second question", func() bool { return reg.questions() > 1 })
	if len(reg.woken) != 0 {
		t.Error("the same error woke the tenant again")
	}
	reg.says("sha256:bb", nil)
	eventually(t, clock, time.Second, "an answer", func() bool {
		c, err := r.Resolve("acme", runtimeChart)
		return err == nil && c.Digest == "sha256:bb"
	})
	reg.wakes(t)
}

func TestResolverKeepsAnAnswerWhileTheRegistryIsDown(t *testing.T) {
	r, reg, clock := resolving(t)
	reg.says("sha256:aa", nil)
	_, _ = r.Resolve("acme", runtimeChart)
	reg.wakes(t)
	reg.says("", errors.New("down"))
	clock.Step(chartAge + time.Second)
	if c, err := r.Resolve("acme", runtimeChart); err != nil || c.Digest != "sha256:aa" {
		t.Errorf("%+v, %v", c, err)
	}
	eventually(t, clock, 0, "asking again", func() bool { return reg.questions() == 2 })
	if c, err := r.Resolve("acme", runtimeChart); err != nil || c.Digest != "sha256:aa" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestResolverForgetsWhatNobodyAsksFor(t *testing.T) {
	r, reg, clock := resolving(t)
	reg.says("", errors.New("no such chart"))
	_, _ = r.Resolve("acme", runtimeChart)
	reg.wakes(t)
	eventually(t, clock, time.Minute, "forgetting", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.answers) == 0
	})
	n := reg.questions()
	clock.Step(time.Hour)
	time.Sleep(20 * time.Millisecond)
	if reg.questions() != n {
		t.Error("it asks on")
	}
}

func TestSourceOf(t *testing.T) {
	config := &v1alpha1.ClusterProviderConfig{}
	config.Spec.RuntimeChart = v1alpha1.ChartSource{Repository: "127.0.0.1:5000/charts/runtime", Version: "1.0.0"}
	config.Spec.InsecureRegistries = []string{"127.0.0.1:5001", "127.0.0.1:5000"}
	want := ChartSource{ChartSource: config.Spec.RuntimeChart, Insecure: "127.0.0.1:5000"}
	if have := sourceOf(config); have != want {
		t.Errorf("have %+v", have)
	}
	config.Spec.InsecureRegistries = nil
	if have := sourceOf(config); have.Insecure != "" {
		t.Errorf("plain HTTP to %s, which is not listed", have.Insecure)
	}
}

// TestResolverKeepsNobodyWaitingForAnother: a tenant whose charts take their time has its share of questions, and all of
// them are answered in the end.
func TestResolverKeepsNobodyWaitingForAnother(t *testing.T) {
	slow := make(chan struct{})
	woken := make(chan string, 4*questions)
	r := NewResolver(func(ctx context.Context, tenant string, _ ChartSource) (ResolvedChart, error) {
		if tenant == "evil" {
			select {
			case <-slow:
			case <-ctx.Done():
			}
		}
		return ResolvedChart{Digest: "sha256:aa"}, nil
	}, func(tenant string) { woken <- tenant }, clocktesting.NewFakeClock(epoch))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { _ = r.Start(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	wake := func(want string) {
		t.Helper()
		select {
		case have := <-woken:
			if have != want {
				t.Fatalf("woke %s, not %s", have, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s waits for another", want)
		}
	}
	source := func(values string) ChartSource {
		s := runtimeChart
		s.Values = values
		return s
	}
	for i := range 2 * questions {
		if _, err := r.Resolve("evil", source(strconv.Itoa(i))); !errors.Is(err, ErrAsking) {
			t.Fatal(err)
		}
	}
	if _, err := r.Resolve("acme", source("acme")); !errors.Is(err, ErrAsking) {
		t.Fatal(err)
	}
	wake("acme")
	close(slow)
	for range 2 * questions {
		wake("evil")
	}
}
