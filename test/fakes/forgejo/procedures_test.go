package forgejo_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steading-dev/steading/test/fakes/forgejo"
	"github.com/steading-dev/steading/test/fakes/forgejo/internal/wire"
)

// TestStatusIsWhatWasHeardLast by windows of 60 and 10 seconds.
func TestStatusIsWhatWasHeardLast(t *testing.T) {
	w := newWorld(t)
	id := w.queue("a", "docker")
	r := w.register(instance)
	expect := func(want, when string) {
		t.Helper()
		if have := r.status(); have != want {
			t.Errorf("%s: %s", when, have)
		}
	}
	expect("offline", "never heard of")
	r.must("Declare", wire.DeclareRequest{Labels: []string{"docker"}}, nil)
	expect("idle", "declared")
	task := r.fetch()
	expect("idle", "it has a job, and said nothing of it")
	r.report(task, wire.Unspecified)
	expect("active", "it reported")
	w.clock.Step(10 * time.Second)
	expect("active", "ten seconds ago")
	w.clock.Step(time.Second)
	expect("idle", "eleven seconds ago")
	w.clock.Step(49 * time.Second)
	expect("idle", "a minute ago")
	w.clock.Step(time.Second)
	expect("offline", "more than a minute ago")
	r.must("UpdateLog", wire.UpdateLogRequest{TaskID: task.ID}, nil)
	expect("active", "a log is a report")
	r.report(task, wire.Success)
	expect("gone", "the job is reported")
	if have := w.job(id); have.Status != forgejo.StatusSuccess {
		t.Errorf("the job is %+v", have)
	}
}

func TestJobsGoToThoseWhoFitInTheOrderOfWaiting(t *testing.T) {
	w := newWorld(t)
	w.queue("windows", "windows")
	w.queue("both", "docker", "arm")
	w.clock.Step(time.Second)
	late := w.queue("late", "docker")
	w.clock.Step(time.Second)
	elsewhere, err := w.Queue(forgejo.NewJob{Repository: "ann/dots", Name: "elsewhere", Labels: []string{"docker"}, Payload: "of elsewhere"})
	must(t, err)
	w.queue("none")
	cases := []struct {
		reason string
		prefix string
		labels []string
		want   string
	}{
		{"All labels are needed.", instance, []string{"docker"}, "late"},
		{"More do no harm, and who waited longest is first.", "/api/v1/orgs/acme/actions/runners", []string{"docker", "arm"}, "both"},
		{"An organization's runner serves its own.", "/api/v1/orgs/acme/actions/runners", []string{"docker"}, ""},
		{"So does a repository's.", "/api/v1/repos/acme/web/actions/runners", []string{"docker"}, ""},
		{"A repository's runner serves it.", "/api/v1/repos/ann/dots/actions/runners", []string{"docker"}, "elsewhere"},
		{"A job without labels is nobody's.", instance, []string{}, ""},
	}
	for _, tc := range cases {
		task := w.register(tc.prefix, tc.labels...).fetch()
		have := ""
		if task != nil {
			have = strings.TrimPrefix(string(task.WorkflowPayload), "of ")
		}
		if have != tc.want {
			t.Errorf("%s have %q", tc.reason, have)
		}
	}
	for _, id := range []int64{late, elsewhere} {
		if have := w.job(id); have.Status != forgejo.StatusRunning || len(have.Runs) != 1 {
			t.Errorf("it runs once: %+v", have)
		}
	}
}

func TestRerunWaitsAnew(t *testing.T) {
	w := newWorld(t)
	old := w.queue("old", "docker")
	must(t, w.Cancel(old))
	w.clock.Step(time.Second)
	w.queue("new", "docker")
	w.clock.Step(time.Second)
	must(t, w.Rerun(old))
	if have := w.register(instance, "docker").fetch(); string(have.WorkflowPayload) != "of new" {
		t.Errorf("the first is %s", have.WorkflowPayload)
	}
}

func TestHandleIsOneAttempt(t *testing.T) {
	w := newWorld(t)
	w.queue("first", "docker")
	id := w.queue("second", "docker")
	r := w.register(instance, "docker")
	fetch := func(handle string) *wire.Task {
		var res wire.FetchSingleTaskResponse
		r.must("FetchSingleTask", wire.FetchSingleTaskRequest{Handle: handle}, &res)
		return res.Task
	}
	handle := w.job(id).Handle
	must(t, w.Cancel(id))
	must(t, w.Rerun(id))
	if have := fetch(handle); have != nil {
		t.Errorf("an attempt that is past: %+v", have)
	}
	if have := fetch(w.job(id).Handle); have == nil || string(have.WorkflowPayload) != "of second" {
		t.Errorf("the attempt of now: %+v", have)
	}
}

func TestEphemeralRunnerTakesOneJob(t *testing.T) {
	w := newWorld(t)
	w.queue("a", "docker")
	w.queue("b", "docker")
	r := w.register(instance, "docker")
	r.key = "k1"
	task := r.fetch()
	if again := r.fetch(); again == nil || again.ID != task.ID {
		t.Errorf("with the same key it is the same task: %+v", again)
	}
	r.key = "k2"
	if second := r.fetch(); second != nil {
		t.Errorf("with another it is another: %+v", second)
	}
	r.report(task, wire.Failure)
	if have := r.call("UpdateLog", wire.UpdateLogRequest{TaskID: task.ID}, nil); have.status != http.StatusUnauthorized {
		t.Errorf("after the last report it is known: %+v", have)
	}
	if r.why() != "job reported" {
		t.Errorf("it is gone as %s", r.why())
	}
}

func TestRunnerThatIsNotEphemeralTakesMany(t *testing.T) {
	w := newWorld(t)
	first, second := w.queue("a", "docker"), w.queue("b", "docker")
	must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteRegister, Kind: forgejo.FaultIgnoreEphemeral}))
	r := w.register(instance, "docker")
	for range 2 {
		r.report(r.fetch(), wire.Success)
	}
	if w.job(first).Status != forgejo.StatusSuccess || w.job(second).Status != forgejo.StatusSuccess || r.status() != "active" {
		t.Errorf("have %+v, %s", w.Jobs(), r.status())
	}
	third := w.queue("c", "docker")
	task := r.fetch()
	must(t, w.Cancel(third))
	if have := r.report(task, wire.Unspecified); have != wire.Cancelled {
		t.Errorf("it is told %s", have)
	}
}

// TestTasksThatAreStoppedTakeTheirRunnerAlong by any of the ways to stop them.
func TestTasksThatAreStoppedTakeTheirRunnerAlong(t *testing.T) {
	cases := map[string]struct {
		reason string
		stop   func(*world, *runner, *wire.Task, int64)
		job    string // Empty: gone.
		why    string
	}{
		"Cancelled": {"Its user cancelled it.", func(w *world, _ *runner, _ *wire.Task, id int64) { must(w.t, w.Cancel(id)) }, forgejo.StatusCancelled, "job stopped"},
		"Zombie":    {"Nothing was said for ten minutes.", func(w *world, _ *runner, _ *wire.Task, _ int64) { w.clock.Step(10*time.Minute + time.Second) }, forgejo.StatusFailure, "job stopped"},
		"NotZombie": {"Something was.", func(w *world, r *runner, x *wire.Task, _ int64) {
			w.clock.Step(6 * time.Minute)
			r.report(x, wire.Unspecified)
			w.clock.Step(6 * time.Minute)
		}, forgejo.StatusRunning, ""},
		"Endless": {"It took three hours.", func(w *world, r *runner, x *wire.Task, _ int64) {
			for range 37 {
				w.clock.Step(5 * time.Minute)
				r.call("UpdateTask", wire.UpdateTaskRequest{State: wire.TaskState{ID: x.ID}}, nil)
			}
		}, forgejo.StatusFailure, "job stopped"},
		"Repository": {"Its repository is gone.", func(w *world, _ *runner, _ *wire.Task, _ int64) { must(w.t, w.DeleteRepository("acme", "web")) }, "", "repository deleted"},
		"Owner":      {"Its owner is gone.", func(w *world, _ *runner, _ *wire.Task, _ int64) { must(w.t, w.DeleteOwner("acme")) }, "", "repository deleted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.queue("a", "docker")
			r := w.register(instance, "docker")
			tc.stop(w, r, r.fetch(), id)
			if have, err := w.Job(id); (err != nil) != (tc.job == "") || have.Status != tc.job || r.why() != tc.why {
				t.Errorf("%s the job is %+v, %v, the runner went because %q", tc.reason, have, err, r.why())
			}
		})
	}
}

func TestAbandonedJobsAreCancelled(t *testing.T) {
	w := newWorld(t)
	id := w.queue("a", "docker")
	unused := w.register(instance, "docker")
	w.clock.Step(24 * time.Hour)
	if have := w.job(id); have.Status != forgejo.StatusWaiting {
		t.Errorf("after a day it is %s", have.Status)
	}
	w.clock.Step(time.Second)
	if have := w.job(id); have.Status != forgejo.StatusCancelled || unused.status() != "offline" {
		t.Errorf("then it is %s, and a runner that was never used is %s", have.Status, unused.status())
	}
}

func TestOfflineRunnersAreCleanedUpWhenAsked(t *testing.T) {
	w := newWorld(t)
	never := w.register(instance)
	w.clock.Step(2 * time.Hour)
	seen := w.register(instance, "docker")
	fresh := w.register(instance)
	w.CleanUpOfflineRunners(time.Hour)
	if never.why() != "offline" || seen.status() != "idle" || fresh.status() != "offline" {
		t.Errorf("never seen: %q, seen: %s, fresh: %s", never.why(), seen.status(), fresh.status())
	}
	w.clock.Step(90 * time.Minute)
	if w.CleanUpOfflineRunners(time.Hour); seen.why() != "offline" {
		t.Errorf("seen long ago: %q", seen.why())
	}
}

func TestLogIsAcknowledged(t *testing.T) {
	w := newWorld(t)
	id := w.queue("a", "docker")
	r := w.register(instance, "docker")
	task := r.fetch()
	update := func(index int64, more bool, lines ...string) (int64, int) {
		req := wire.UpdateLogRequest{TaskID: task.ID, Index: wire.Int64(index), NoMore: !more}
		for _, l := range lines {
			req.Rows = append(req.Rows, wire.LogRow{Time: w.clock.Now(), Content: l})
		}
		var res wire.UpdateLogResponse
		answer := r.call("UpdateLog", req, &res)
		return int64(res.AckIndex), answer.status
	}
	steps := []struct {
		reason string
		index  int64
		more   bool
		lines  []string
		ack    int64
		status int
	}{
		{"Rows are taken.", 0, true, []string{"a", "b"}, 2, 200},
		{"What is there is not taken twice.", 1, true, []string{"b", "c"}, 3, 200},
		{"What is all there is acknowledged.", 0, true, []string{"a"}, 3, 200},
		{"A gap is not left.", 5, true, []string{"x"}, 3, 200},
		{"The last are taken.", 3, false, []string{"d"}, 4, 200},
		{"After the last there are none.", 4, true, []string{"e"}, 0, 409},
	}
	for _, s := range steps {
		if ack, status := update(s.index, s.more, s.lines...); ack != s.ack || status != s.status {
			t.Errorf("%s have %d, %d", s.reason, ack, status)
		}
	}
	log, err := w.Log(id)
	must(t, err)
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, log); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
}

func TestProceduresAreRefused(t *testing.T) {
	w := newWorld(t)
	w.queue("a", "docker")
	theirs := w.register(instance, "docker")
	task := theirs.fetch()
	r := w.register(instance, "docker")
	update := wire.UpdateTaskRequest{State: wire.TaskState{ID: task.ID, Result: wire.Success}}
	if have := r.call("UpdateTask", update, nil); have.status != 500 || !strings.Contains(have.body, "invalid runner") {
		t.Errorf("another's task: %+v", have)
	}
	update.State.Result = "RESULT_WON"
	if have := theirs.call("UpdateTask", update, nil); have.status != 400 {
		t.Errorf("a result that is none: %+v", have)
	}
	if have := w.ask("", "POST", wire.Base+"FetchTask", "", "Content-Type", "application/proto", wire.HeaderUUID, r.UUID, wire.HeaderToken, r.Token); have.status != 415 {
		t.Errorf("only JSON is spoken: %+v", have)
	}
	r.Token = theirs.Token
	if have := r.call("FetchTask", wire.FetchTaskRequest{}, nil); have.status != 401 {
		t.Errorf("another's token: %+v", have)
	}
}

func TestSearchIsNotMadeForTheSameVersion(t *testing.T) {
	w := newWorld(t)
	r := w.register(instance, "docker")
	var res wire.FetchTaskResponse
	r.must("FetchTask", wire.FetchTaskRequest{}, &res)
	version := res.TasksVersion
	w.queue("a", "docker")
	r.must("FetchTask", wire.FetchTaskRequest{TasksVersion: version}, &res)
	if res.Task == nil || res.TasksVersion == version {
		t.Errorf("the queue changed: %+v", res)
	}
	other, last := w.register(instance, "docker"), res.TasksVersion
	must(t, w.Cancel(w.Jobs()[0].ID))
	w.SetMaxResponseItems(50)
	res = wire.FetchTaskResponse{}
	other.must("FetchTask", wire.FetchTaskRequest{TasksVersion: last}, &res)
	if res.Task != nil || res.TasksVersion != last {
		t.Errorf("the queue did not: %+v", res)
	}
}

// TestLostFetchIsRecovered by the key of the request.
func TestLostFetchIsRecovered(t *testing.T) {
	w := newWorld(t)
	id := w.queue("a", "docker")
	r := w.register(instance, "docker")
	must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteFetchTask, Kind: forgejo.FaultLost, Times: 1}))
	header := []string{"Content-Type", "application/json", wire.HeaderUUID, r.UUID, wire.HeaderToken, r.Token, wire.HeaderRequestKey, "k"}
	if have, err := w.try("", "POST", wire.Base+"FetchTask", "{}", header...); err == nil {
		t.Fatalf("have %+v", have)
	}
	r.key = "k"
	if task := r.fetch(); task == nil || len(w.job(id).Runs) != 1 {
		t.Errorf("the task is %+v of %+v", task, w.job(id))
	}
}

// TestManyAtOnce has as many runners as jobs, and each gets one.
func TestManyAtOnce(t *testing.T) {
	const many = 60
	w := newWorld(t)
	for range many {
		w.queue("a", "docker")
	}
	runners := make([]*runner, many)
	for i := range runners {
		runners[i] = w.register(instance, "docker")
	}
	var all sync.WaitGroup
	errs := make(chan error, many)
	for _, r := range runners {
		all.Go(func() {
			header := []string{"Content-Type", "application/json", wire.HeaderUUID, r.UUID, wire.HeaderToken, r.Token}
			for _, step := range []string{"GET " + instance, "POST " + wire.Base + "FetchTask", "GET " + instance + "/jobs"} {
				method, path, _ := strings.Cut(step, " ")
				if have, err := w.try(w.token, method, path, "{}", header...); err != nil || have.status != http.StatusOK {
					errs <- fmt.Errorf("%s: %+v, %w", step, have, err)
				}
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	for _, j := range w.Jobs() {
		if len(j.Runs) != 1 {
			t.Errorf("job %d was run %d times", j.ID, len(j.Runs))
		}
	}
}
