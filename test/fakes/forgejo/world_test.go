package forgejo_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/steading-dev/steading/test/fakes/forgejo"
	"github.com/steading-dev/steading/test/fakes/forgejo/internal/wire"
)

// A world has an administrator root, a user ann with the repository ann/dots, and her organization acme with acme/web.
type world struct {
	*forgejo.Server
	t     *testing.T
	url   string
	clock *clocktesting.FakeClock
	token string // Of root, for everything.
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	w := &world{Server: forgejo.New(forgejo.Options{Clock: clock}), t: t, clock: clock}
	must(t, w.AddUser("root", true))
	must(t, w.AddUser("ann", false))
	must(t, w.AddOrganization("acme", "ann"))
	must(t, w.AddRepository("acme", "web", true))
	must(t, w.AddRepository("ann", "dots", false))
	w.token = w.tokenOf("root", "all")
	srv := httptest.NewServer(w)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { w.UnsetFaults("", "") })
	w.url = srv.URL
	return w
}

func (w *world) tokenOf(user string, scopes ...string) string {
	w.t.Helper()
	token, err := w.AddToken(user, scopes...)
	must(w.t, err)
	return token
}

// queue a job of acme/web.
func (w *world) queue(name string, labels ...string) int64 {
	w.t.Helper()
	id, err := w.Queue(forgejo.NewJob{Repository: "acme/web", Name: name, Labels: labels, Payload: "of " + name})
	must(w.t, err)
	return id
}

func (w *world) job(id int64) forgejo.Job {
	w.t.Helper()
	j, err := w.Job(id)
	must(w.t, err)
	return j
}

// A reply of the server.
type reply struct {
	status int
	header http.Header
	body   string
}

// ask with a token, or none.
func (w *world) ask(token, method, path, body string, header ...string) reply {
	w.t.Helper()
	r, err := w.try(token, method, path, body, header...)
	must(w.t, err)
	return r
}

func (w *world) try(token, method, path, body string, header ...string) (reply, error) {
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return reply{}, err
	}
	if token != "" {
		req.Header.Set("Authorization", "token "+token)
	}
	for pair := range slices.Chunk(header, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := c.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	return reply{status: res.StatusCode, header: res.Header, body: string(raw)}, err
}

// A runner that a test plays.
type runner struct {
	w     *world
	ID    int64  `json:"id"`
	UUID  string `json:"uuid"`
	Token string `json:"token"`
	key   string
}

const instance = "/api/v1/admin/actions/runners"

// register a runner under a prefix, and declare labels.
func (w *world) register(prefix string, labels ...string) *runner {
	w.t.Helper()
	r := &runner{w: w}
	answer := w.ask(w.token, "POST", prefix, `{"name":"one","description":"d","ephemeral":true}`)
	if answer.status != http.StatusCreated {
		w.t.Fatalf("registered: %+v", answer)
	}
	decode(w.t, answer.body, r)
	if labels != nil {
		r.must("Declare", wire.DeclareRequest{Version: "v1", Labels: labels}, nil)
	}
	return r
}

// call a procedure.
func (r *runner) call(name string, req, into any) reply {
	r.w.t.Helper()
	raw, err := json.Marshal(req)
	must(r.w.t, err)
	answer := r.w.ask("", "POST", wire.Base+name, string(raw), "Content-Type", "application/json",
		wire.HeaderUUID, r.UUID, wire.HeaderToken, r.Token, wire.HeaderRequestKey, r.key)
	if into != nil && answer.status == http.StatusOK {
		decode(r.w.t, answer.body, into)
	}
	return answer
}

func (r *runner) must(name string, req, into any) {
	r.w.t.Helper()
	if answer := r.call(name, req, into); answer.status != http.StatusOK {
		r.w.t.Fatalf("%s: %+v", name, answer)
	}
}

// fetch any task, or none.
func (r *runner) fetch() *wire.Task {
	r.w.t.Helper()
	var res wire.FetchTaskResponse
	r.must("FetchTask", wire.FetchTaskRequest{}, &res)
	return res.Task
}

func (r *runner) report(t *wire.Task, result wire.Result) wire.Result {
	r.w.t.Helper()
	var res wire.UpdateTaskResponse
	r.must("UpdateTask", wire.UpdateTaskRequest{State: wire.TaskState{ID: t.ID, Result: result}}, &res)
	return res.State.Result
}

// status as the API has it, or gone.
func (r *runner) status() string {
	r.w.t.Helper()
	answer := r.w.ask(r.w.token, "GET", instance+"/"+itoa(r.ID), "")
	if answer.status == http.StatusNotFound {
		return "gone"
	}
	var have struct {
		Status string `json:"status"`
	}
	decode(r.w.t, answer.body, &have)
	return have.Status
}

// why the runner was deleted.
func (r *runner) why() string {
	for _, x := range r.w.Registrations() {
		if x.ID == r.ID {
			return x.Why
		}
	}
	return "never registered"
}

func decode(t *testing.T, body string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
