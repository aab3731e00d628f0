package onejob_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steading-dev/steading/test/fakes/forgejo"
	"github.com/steading-dev/steading/test/fakes/forgejo/onejob"
)

type world struct {
	*forgejo.Server
	t     *testing.T
	url   string
	token string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Server: forgejo.New(forgejo.Options{}), t: t}
	must(t, w.AddUser("root", true))
	must(t, w.AddRepository("root", "web", false))
	var err error
	w.token, err = w.AddToken("root", "all")
	must(t, err)
	srv := httptest.NewServer(w)
	t.Cleanup(srv.Close)
	w.url = srv.URL
	return w
}

func (w *world) queue(payload string) int64 {
	w.t.Helper()
	id, err := w.Queue(forgejo.NewJob{Repository: "root/web", Labels: []string{"docker"}, Payload: payload})
	must(w.t, err)
	return id
}

// register an ephemeral runner, and return how it is run: fast.
func (w *world) register() onejob.Options {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+"/api/v1/admin/actions/runners", strings.NewReader(`{"name":"one","ephemeral":true}`))
	must(w.t, err)
	req.Header.Set("Authorization", "token "+w.token)
	res, err := http.DefaultClient.Do(req)
	must(w.t, err)
	defer func() { _ = res.Body.Close() }()
	var r struct{ UUID, Token string }
	must(w.t, json.NewDecoder(res.Body).Decode(&r))
	return onejob.Options{
		URL: w.url, UUID: r.UUID, Token: r.Token, Labels: []string{"docker:host"},
		FetchInterval: time.Millisecond, ReportInterval: time.Millisecond, RetryDelay: time.Microsecond,
	}
}

func (w *world) job(id int64) forgejo.Job {
	w.t.Helper()
	j, err := w.Job(id)
	must(w.t, err)
	return j
}

// start a runner, and return what it ends with.
func start(ctx context.Context, o onejob.Options) <-chan error {
	done := make(chan error, 1)
	go func() { done <- onejob.Run(ctx, o) }()
	return done
}

// await a condition.
func (w *world) await(what string, is func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("never %s: %+v, %+v", what, w.Jobs(), w.Registrations())
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPayloadIsObeyed(t *testing.T) {
	cases := map[string]struct {
		reason  string
		payload string
		err     error
		job     string
		log     []string
		why     string
	}{
		"Nothing": {"Nothing to do is done.", "", nil, forgejo.StatusSuccess, []string{}, "job reported"},
		"Success": {"Lines are logged.", "sleep: 5ms\nlog: [one, two]\nresult: success", nil, forgejo.StatusSuccess, []string{"one", "two"}, "job reported"},
		"Failure": {"A job that fails was run, and ends well for the runner.", "log: [oh]\nresult: failure", nil, forgejo.StatusFailure, []string{"oh"}, "job reported"},
		"Crash":   {"A runner that crashes leaves its job.", "result: crash", onejob.ErrCrashed, forgejo.StatusRunning, []string{}, ""},
		"Unknown": {"What is not understood fails.", "result: maybe", nil, forgejo.StatusFailure, []string{`cannot read the payload: there is no result "maybe"`}, "job reported"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.queue(tc.payload)
			if err := onejob.Run(t.Context(), w.register()); !errors.Is(err, tc.err) {
				t.Errorf("%s ended with %v", tc.reason, err)
			}
			log, err := w.Log(id)
			must(t, err)
			have := w.Registrations()[0]
			if diff := cmp.Diff(tc.log, log); diff != "" || w.job(id).Status != tc.job || have.Why != tc.why {
				t.Errorf("%s the job is %s, the runner went because %q, log -want, +have:\n%s", tc.reason, w.job(id).Status, have.Why, diff)
			}
			if diff := cmp.Diff([]string{"docker"}, have.Labels); diff != "" {
				t.Errorf("it declared -want, +have:\n%s", diff)
			}
		})
	}
}

func TestWithoutWaitingItAsksOnce(t *testing.T) {
	w := newWorld(t)
	if err := onejob.Run(t.Context(), w.register()); !errors.Is(err, onejob.ErrNoTask) {
		t.Errorf("ended with %v", err)
	}
	want := map[forgejo.Route]int{forgejo.RouteRegister: 1, forgejo.RouteDeclare: 1, forgejo.RouteFetchTask: 1}
	if diff := cmp.Diff(want, w.Calls()); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
	if have := w.Registrations()[0]; have.Status != forgejo.RunnerIdle {
		t.Errorf("its registration stays: %+v", have)
	}
}

func TestWaitingItTakesWhatComes(t *testing.T) {
	w := newWorld(t)
	o := w.register()
	o.Wait = true
	done := start(t.Context(), o)
	w.await("asked again", func() bool { return w.Calls()[forgejo.RouteFetchTask] > 2 })
	id := w.queue("result: success")
	if err := <-done; err != nil || w.job(id).Status != forgejo.StatusSuccess {
		t.Errorf("ended with %v: %+v", err, w.job(id))
	}
}

func TestHandleIsTaken(t *testing.T) {
	w := newWorld(t)
	first, second := w.queue(""), w.queue("")
	o := w.register()
	o.Handle = w.job(second).Handle
	must(t, onejob.Run(t.Context(), o))
	if w.job(first).Status != forgejo.StatusWaiting || w.job(second).Status != forgejo.StatusSuccess {
		t.Errorf("have %+v", w.Jobs())
	}
}

// TestRunnerWithAJobLooksIdleUntilItReports is what a pool must not take for a spare.
func TestRunnerWithAJobLooksIdleUntilItReports(t *testing.T) {
	w := newWorld(t)
	id := w.queue("result: hang")
	o := w.register()
	o.ReportInterval = time.Hour
	start(t.Context(), o)
	w.await("running", func() bool { return w.job(id).Status == forgejo.StatusRunning })
	if have := w.Registrations()[0].Status; have != forgejo.RunnerIdle {
		t.Errorf("it took a job just now, and is %s", have)
	}
}

// TestRunnerOfACancelledJobIsNotTold that it was deleted, and keeps trying.
func TestRunnerOfACancelledJobIsNotTold(t *testing.T) {
	w := newWorld(t)
	id := w.queue("result: hang")
	ctx, kill := context.WithCancel(t.Context())
	done := start(ctx, w.register())
	w.await("active", func() bool { return w.Registrations()[0].Status == forgejo.RunnerActive })
	must(t, w.Cancel(id))
	tried := w.Calls()[forgejo.RouteUpdateTask]
	w.await("tried again", func() bool { return w.Calls()[forgejo.RouteUpdateTask] > tried+3 })
	select {
	case err := <-done:
		t.Fatalf("it ended with %v", err)
	default:
	}
	kill()
	if err := <-done; !errors.Is(err, context.Canceled) || onejob.ExitCode(err) != 1 {
		t.Errorf("killed, it ended with %v", err)
	}
}

// TestRunnerThatIsKeptIsTold where it is not ephemeral, and so not deleted.
func TestRunnerThatIsKeptIsTold(t *testing.T) {
	w := newWorld(t)
	must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteRegister, Kind: forgejo.FaultIgnoreEphemeral}))
	id := w.queue("result: hang")
	done := start(t.Context(), w.register())
	w.await("active", func() bool { return w.Registrations()[0].Status == forgejo.RunnerActive })
	must(t, w.Cancel(id))
	if err := <-done; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestSilentRunnersDoNotReport(t *testing.T) {
	w := newWorld(t)
	id := w.queue("result: silent")
	done := start(t.Context(), w.register())
	w.await("running", func() bool { return w.job(id).Status == forgejo.StatusRunning })
	select {
	case err := <-done:
		t.Fatalf("ended with %v", err)
	case <-time.After(20 * time.Millisecond): // Twenty reports would have been made.
	}
	if n := w.Calls()[forgejo.RouteUpdateTask]; n != 0 {
		t.Errorf("reported %d times", n)
	}
}

func TestStopEndsPollingWellAndTasksAsCancelled(t *testing.T) {
	w := newWorld(t)
	stop := make(chan struct{})
	o := w.register()
	o.Wait, o.Stop, o.FetchInterval = true, stop, time.Hour
	polling := start(t.Context(), o)
	w.await("polled", func() bool { return w.Calls()[forgejo.RouteFetchTask] == 1 })
	id := w.queue("result: hang")
	o = w.register()
	o.Stop, o.ReportInterval = stop, time.Hour
	running := start(t.Context(), o)
	w.await("running", func() bool { return w.job(id).Status == forgejo.StatusRunning })
	close(stop)
	if err := <-polling; err != nil {
		t.Errorf("polling ended with %v", err)
	}
	if err := <-running; err != nil || w.job(id).Status != forgejo.StatusCancelled {
		t.Errorf("running ended with %v: %+v", err, w.job(id))
	}
}

func TestLastReportIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	id := w.queue("")
	must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteUpdateTask, Kind: forgejo.FaultUnavailable, Times: 10}))
	if err := onejob.Run(t.Context(), w.register()); err != nil || w.job(id).Status != forgejo.StatusSuccess {
		t.Errorf("after ten failures: %v, %+v", err, w.job(id))
	}
	id = w.queue("")
	must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteUpdateTask, Kind: forgejo.FaultUnavailable}))
	if err := onejob.Run(t.Context(), w.register()); err != nil || w.job(id).Status != forgejo.StatusRunning {
		t.Errorf("after eleven it ends, well: %v, %+v", err, w.job(id))
	}
}

// TestLostTaskIsFetchedAgain by the key of the request that got no answer.
func TestLostTaskIsFetchedAgain(t *testing.T) {
	w := newWorld(t)
	id := w.queue("")
	must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteFetchTask, Kind: forgejo.FaultLost, Times: 1}))
	o := w.register()
	o.Wait = true
	if err := onejob.Run(t.Context(), o); err != nil || len(w.job(id).Runs) != 1 || w.job(id).Status != forgejo.StatusSuccess {
		t.Errorf("ended with %v: %+v", err, w.job(id))
	}
}

func TestDeletedRunnerDoesNotStart(t *testing.T) {
	w := newWorld(t)
	o := w.register()
	must(t, w.DeleteRunner(w.Registrations()[0].ID))
	if err := onejob.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "unregistered runner") || onejob.ExitCode(err) != 1 {
		t.Errorf("ended with %v", err)
	}
}

// TestManyRunnersRunManyJobs each one, and none twice.
func TestManyRunnersRunManyJobs(t *testing.T) {
	const many = 40
	w := newWorld(t)
	var all sync.WaitGroup
	for i := range many {
		w.queue(fmt.Sprintf("{sleep: 1ms, log: [%d]}", i))
		o := w.register()
		all.Go(func() {
			if err := onejob.Run(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, j := range w.Jobs() {
		if len(j.Runs) != 1 || j.Status != forgejo.StatusSuccess {
			t.Errorf("have %+v", j)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := onejob.Options{URL: "http://127.0.0.1:1", UUID: "00000000-0000-4000-8000-000000000000", Token: "t", Labels: []string{"a:host"}}
	cases := map[string]struct {
		reason string
		change func(*onejob.Options)
		says   string
	}{
		"Good":   {"The server does not answer.", func(*onejob.Options) {}, "failed to declare"},
		"URL":    {"Only the web is spoken.", func(o *onejob.Options) { o.URL = "ftp://x" }, "url"},
		"UUID":   {"A UUID is one.", func(o *onejob.Options) { o.UUID = "x" }, "uuid"},
		"Token":  {"There is a token.", func(o *onejob.Options) { o.Token = "" }, "token"},
		"Space":  {"Names have no spaces around them.", func(o *onejob.Options) { o.Labels = []string{" a:host"} }, "space"},
		"Docker": {"Other labels want docker.", func(o *onejob.Options) { o.Labels = []string{"a"} }, "docker"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := good
			tc.change(&o)
			if err := onejob.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s ended with %v", tc.reason, err)
			}
		})
	}
}

func TestTokenIsReadFromAFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), "secret\n")
	write(t, filepath.Join(dir, "empty"), "\n")
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	for from, want := range map[string]string{
		"file://" + dir + "/token": "secret", "file:" + dir + "/token": "secret", "file://$CREDENTIALS_DIRECTORY/token": "secret",
		"file://" + dir + "/empty": "", "file://" + dir + "/none": "", dir + "/token": "", "https://example.com/token": "",
	} {
		if have, err := onejob.TokenFrom(from); have != want || (err == nil) != (want != "") {
			t.Errorf("%s: have %q, %v", from, have, err)
		}
	}
}

func TestLogHasNoToken(t *testing.T) {
	w := newWorld(t)
	w.queue("log: [hello]")
	o := w.register()
	var log bytes.Buffer
	o.Log = io.Writer(&log)
	must(t, onejob.Run(t.Context(), o))
	if !strings.Contains(log.String(), "hello") || strings.Contains(log.String(), o.Token) {
		t.Errorf("the log says %s", log.String())
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o600))
}
