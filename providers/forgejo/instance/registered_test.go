package instance

import (
	"strings"
	"testing"
	"time"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

// TestARegistrationThatIsRefused: a token that may read only sees the queue, so that all looks well but for the runners, which
// nobody can register.
func TestARegistrationThatIsRefused(t *testing.T) {
	w := newWorld(t)
	must(t, w.forgejo.SetFault(forgejo.Fault{Route: forgejo.RouteRegister, Kind: forgejo.FaultForbidden}))
	w.runner()
	w.converge()
	st := w.status()
	if st.Reason != v1alpha1.CreateFailed || !st.Released {
		t.Fatalf("got %+v, want a runner that is given up", st)
	}
	if want := "the token may not do that: it has to have write:admin"; !strings.Contains(st.Message, want) {
		t.Errorf("message %q does not say %q", st.Message, want)
	}
}

// TestARunnerThatIsNeverRegistered: a server that lists its queue and registers nobody does not hold a slot for ever.
func TestARunnerThatIsNeverRegistered(t *testing.T) {
	w := newWorld(t)
	must(t, w.forgejo.SetFault(forgejo.Fault{Route: forgejo.RouteRegister, Kind: forgejo.FaultUnavailable}))
	w.runner()
	_, _ = w.reconcile()
	w.look()

	w.clock.Step(10*time.Minute - 2*time.Second)
	_, _ = w.reconcile()
	if st := w.status(); st.Reason != "" {
		t.Fatalf("too early: %+v", st)
	}
	w.clock.Step(2 * time.Second)
	w.listed, w.looked = nil, time.Time{}
	_, _ = w.reconcile()
	if st := w.status(); st.Reason != "" {
		t.Fatalf("by a server that does not answer at all: %+v", st)
	}
	w.look()
	w.converge()
	st := w.status()
	if st.Reason != v1alpha1.StartupTimeout || !st.Released {
		t.Fatalf("got %+v, want a runner that is given up", st)
	}
	if want := "it was not registered within startupTimeoutSeconds, 600: cannot register runner"; !strings.Contains(st.Message, want) {
		t.Errorf("message %q does not say %q", st.Message, want)
	}
}
