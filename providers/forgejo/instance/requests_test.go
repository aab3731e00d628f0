package instance

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

// pagesOfALook is how many requests a look reads the registrations by: the last page is empty.
const pagesOfALook = 2

// TestRequestsOfARunnersLife counts what a runner costs that is made, waits through some looks, takes a job and is through with
// it: requests to the API server that no cache answers, and requests to Forgejo but for the looks, which all runners share.
func TestRequestsOfARunnersLife(t *testing.T) {
	w := newWorld(t)
	w.runner()
	w.requests = nil
	w.forgejo.ResetCounts()
	w.converge()
	for range 3 { // Its pod starts, and says so.
		w.clock.Step(time.Second)
		w.converge()
	}
	w.podRuns()
	w.converge()
	w.connect()
	looks := 0
	look := func() {
		looks++
		w.later(30 * time.Second)
		w.connect()
	}
	look()
	look()
	task := w.take()
	look()
	w.report(task, "RESULT_SUCCESS")
	w.later(30 * time.Second) // It is not listed any more.
	w.podEnds(0)
	w.converge()
	w.converge()
	if st := w.status(); st.Reason != v1alpha1.RunnerConsumed || !st.Released {
		t.Fatalf("it is not through: %+v", st)
	}
	got := map[string]int{}
	for _, r := range w.requests {
		got[r]++
	}
	for _, node := range []string{"create Pod", "status Pod", "status Job"} {
		delete(got, node)
	}
	want := map[string]int{
		// What was made, and the credential that is taken away.
		"create Secret": 1, "create Job": 1, "delete Secret": 1,
		// Before and after it was made.
		"update RunnerInstance": 2,
		// That it is registered, made, has a child, runs, is online, has a job, is judged, and released.
		"status RunnerInstance": 8,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests to the API server: -want, +got:\n%s", diff)
	}
	// It is registered, read back, and asked for before the verdict; that it is gone is believed of a scope that is there.
	calls := w.forgejo.Calls()
	have := []int{calls[forgejo.RouteRegister], calls[forgejo.RouteRunner], calls[forgejo.RouteDeregister], calls[forgejo.RouteJobs], calls[forgejo.RouteRunners] - pagesOfALook*looks - 1}
	if diff := cmp.Diff([]int{1, 2, 0, 0, 1}, have); diff != "" {
		t.Errorf("requests to Forgejo, to register, read, deregister, list jobs and list runners: -want, +got:\n%s", diff)
	}
}
