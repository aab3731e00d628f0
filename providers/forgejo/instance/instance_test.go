package instance

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
)

func TestMakesARunner(t *testing.T) {
	w := newWorld(t)
	w.runner()
	w.converge()
	want := []string{
		"update RunnerInstance", "register", "status RunnerInstance", "create Secret", "create Job", "update RunnerInstance", "status RunnerInstance",
		"status RunnerInstance",
	}
	if diff := cmp.Diff(want, w.calls); diff != "" {
		t.Errorf("the record is first, and what it registered as is recorded before anything is made of it: -want, +got:\n%s", diff)
	}
	w.wantOneRunner()
	if r := w.registrations()[0]; r.Name != name || r.Description != "steading.dev/pool=uid-pool instance="+name || !r.Ephemeral {
		t.Errorf("registered %+v", r)
	}
	w.later(time.Second)
	w.calls = nil
	w.later(time.Second)
	if len(w.calls) > 0 {
		t.Errorf("a runner that waits writes nothing: %v", w.calls)
	}
}

func TestConsumed(t *testing.T) {
	w := newWorld(t)
	w.ready()
	task := w.take()
	w.later(time.Second)
	if st := w.status(); st.State != v1alpha1.StateActive || st.ActiveTime == nil || st.Phase != v1alpha1.RunnerPending {
		t.Errorf("with a job in hand: %+v", st)
	}
	w.report(task, "RESULT_FAILURE")
	w.calls = nil
	w.later(time.Second)
	if st := w.status(); st.Phase != v1alpha1.RunnerCompleted || st.Reason != v1alpha1.RunnerConsumed || st.CompletionTime == nil || st.Released {
		t.Errorf("a job that failed is a job (its runner holds its slot while it ends): %+v", st)
	}
	if diff := cmp.Diff([]string{"status RunnerInstance", "delete Secret", "status RunnerInstance"}, w.calls[:3]); diff != "" {
		t.Errorf("the verdict is written before anything follows from it: -want, +got:\n%s", diff)
	}
	w.podEnds(0)
	w.converge()
	if st := w.status(); !st.Released {
		t.Errorf("it has ended, and is released: %+v", st)
	}
	w.wantNothing(true)
	w.calls = nil
	w.later(time.Hour)
	if len(w.calls) > 0 {
		t.Errorf("a runner that is finished is not touched again: %v", w.calls)
	}
}
