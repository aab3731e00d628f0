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

// TestANumberThatIsAnotherOnes: a server whose database was restored from a backup gives numbers out again. What has a runner's number
// then is not the runner, and is left alone, be it that the runner is judged, or its record deleted.
func TestANumberThatIsAnotherOnes(t *testing.T) {
	cases := map[string]struct {
		reason string
		end    func(*world)
	}{
		"Judged":  {"the look lists another one", func(w *world) { w.later(time.Second); w.later(grace) }},
		"Deleted": {"nobody looks at it any more", func(w *world) { w.delete(); w.converge() }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ready()
			id := w.registrations()[0].ID
			must(t, w.forgejo.RestoreBefore(id))
			other, err := w.api.Register(t.Context(), "other", "")
			must(t, err)
			if other.ID != id {
				t.Fatalf("it has number %d, want %d", other.ID, id)
			}
			tc.end(w)
			if mg := w.record(); mg != nil && mg.Status.AtProvider.State != v1alpha1.StateGone {
				t.Errorf("%s: it is %s", tc.reason, mg.Status.AtProvider.State)
			}
			if all := w.registrations(); len(all) != 1 || all[0].UUID != other.UUID {
				t.Errorf("%s: the other one was deregistered: %+v", tc.reason, w.forgejo.Registrations())
			}
		})
	}
}

// TestAServerThatWasAway has not heard of a runner that started meanwhile. It is not blamed for that, but has the time of the outage to
// be heard of; and nor is one that could not be registered.
func TestAServerThatWasAway(t *testing.T) {
	for name, registered := range map[string]bool{"Registered": true, "Unregistered": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			away := forgejo.Fault{Kind: forgejo.FaultUnavailable}
			w.runner()
			if registered {
				w.converge()
				w.podRuns()
			}
			must(t, w.forgejo.SetFault(away))
			for range 12 {
				w.look()
				_, _ = w.reconcile()
				w.clock.Step(time.Minute)
			}
			w.forgejo.UnsetFaults("", "")
			must(t, w.forgejo.SetFault(forgejo.Fault{Route: forgejo.RouteRegister, Kind: forgejo.FaultUnavailable}))
			w.look()
			_, _ = w.reconcile()
			if st := w.status(); st.Reason != "" {
				t.Fatalf("the server was back a moment ago, and it is judged %s: %s", st.Reason, st.Message)
			}
			w.clock.Step(10*time.Minute - time.Second)
			w.look()
			_, _ = w.reconcile()
			if st := w.status(); st.Reason != "" {
				t.Fatalf("it may be heard of for another second, and is judged %s", st.Reason)
			}
			w.later(time.Second)
			if st := w.status(); st.Reason != v1alpha1.StartupTimeout {
				t.Errorf("but not for ever: %q", st.Reason)
			}
		})
	}
}
