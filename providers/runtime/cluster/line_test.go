package cluster

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// quick is a pace for tests.
var quick = pace{first: 10 * time.Millisecond, most: 50 * time.Millisecond, blind: 20 * time.Millisecond}

// within waits until something is so.
func within(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if so() {
			return
		}
	}
	t.Fatalf("%s: not within 10s", what)
}

func TestALineSeesThatAServerGoesAndComesBack(t *testing.T) {
	s := newAPIServer(t, nil)
	ls := newLines(quick)
	t.Cleanup(func() { ls.drop("acme-edge") })
	e := s.endpoint()
	ls.hold(t.Context(), "acme-edge", e)
	l := ls.to("acme-edge", e)
	within(t, "up", func() bool { return l.state().up() && s.watched() == 1 })
	if a := l.state().answer; a.version != "v1.35.4" {
		t.Errorf("answer %+v", a)
	}

	s.answerWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	s.cut()
	within(t, "down", func() bool { p := l.state().problem; return p != nil && p.Reason == steading.ReasonTargetUnreachable })
	if a := l.state().answer; a.version != "v1.35.4" {
		t.Errorf("the last version is forgotten: %+v", a)
	}

	s.mu.Lock()
	s.version = "v1.36.0"
	s.mu.Unlock()
	s.answerWith(nil)
	within(t, "up again, upgraded", func() bool { return l.state().up() && l.state().version == "v1.36.0" })
}

func TestALineWakesOnlyForNews(t *testing.T) {
	s := newAPIServer(t, nil)
	s.answerWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	var woken, probes atomic.Int32
	l := &line{endpoint: s.endpoint(), pace: quick, wake: func() { woken.Add(1) }}
	s.answerWith(func(w http.ResponseWriter, _ *http.Request) { probes.Add(1); w.WriteHeader(http.StatusUnauthorized) })
	go l.run(t.Context())
	within(t, "several tries", func() bool { return probes.Load() > 3 })
	if n := woken.Load(); n != 1 {
		t.Errorf("woken %d times for one piece of news", n)
	}
}

func TestALineAsksWhatItMayWatch(t *testing.T) {
	s := newAPIServer(t, nil)
	ls := newLines(quick)
	t.Cleanup(func() { ls.drop("acme-edge") })
	ls.hold(t.Context(), "acme-edge", s.endpoint())
	within(t, "a watch", func() bool { return s.watched() == 1 })
	if !slices.Contains(s.paths(), "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies") {
		t.Errorf("asked %v", s.paths())
	}
}

func TestLinesAreHeldToWhatMattersOnly(t *testing.T) {
	s := newAPIServer(t, nil)
	ls := newLines(quick)
	a, b := s.endpoint(), s.endpoint()
	b.Credential = Credential{token: "other"}
	ls.hold(t.Context(), "acme-edge", a, b, a)
	first := ls.to("acme-edge", a)
	if first == nil || ls.to("acme-edge", b) == nil || len(ls.byCluster["acme-edge"]) != 2 {
		t.Fatalf("lines %v", ls.byCluster)
	}
	within(t, "a watch", func() bool { return s.watched() == 1 })
	ls.hold(t.Context(), "acme-edge", a)
	if ls.to("acme-edge", a) != first || ls.to("acme-edge", b) != nil {
		t.Error("the line that is kept was made anew, or the other was kept")
	}
	ls.drop("acme-edge")
	within(t, "no watch", func() bool { return s.watched() == 0 })
	if len(ls.byCluster) != 0 {
		t.Errorf("lines %v", ls.byCluster)
	}
}
