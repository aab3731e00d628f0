package forgejo_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/steading-dev/steading/test/fakes/forgejo"
	"github.com/steading-dev/steading/test/fakes/forgejo/internal/wire"
)

// TestEverythingIsDoneFromAfar as a test does that is not in the server's process.
func TestEverythingIsDoneFromAfar(t *testing.T) {
	w := newWorld(t)
	var jobs []int64
	var token struct {
		Value string `json:"value"`
	}
	do := func(method, path, body string, into any) {
		t.Helper()
		have := w.ask("", method, "/fake"+path, body)
		if have.status != http.StatusOK {
			t.Fatalf("%s %s: %+v", method, path, have)
		}
		if into != nil {
			decode(t, have.body, into)
		}
	}
	do("POST", "/users", `{"name":"eve","admin":true}`, nil)
	do("POST", "/organizations", `{"name":"evil","owners":["eve"]}`, nil)
	do("POST", "/repositories", `{"owner":"evil","name":"plans","private":true}`, nil)
	do("POST", "/tokens", `{"user":"eve","scopes":["write:admin"]}`, &token)
	do("POST", "/jobs", `{"repository":"evil/plans","labels":["docker"],"payload":"x","count":3}`, &jobs)
	w.token = token.Value
	r := w.register(instance, "docker")
	task := r.fetch()
	r.must("UpdateLog", wire.UpdateLogRequest{TaskID: task.ID, Rows: []wire.LogRow{{Content: "hello"}}}, nil)
	r.report(task, wire.Success)

	var job forgejo.Job
	do("GET", "/jobs/"+itoa(jobs[0]), "", &job)
	if job.Status != forgejo.StatusSuccess || len(job.Runs) != 1 || job.Runs[0].Runner != r.ID {
		t.Errorf("the job is %+v", job)
	}
	var log []string
	if do("GET", "/jobs/"+itoa(jobs[0])+"/log", "", &log); len(log) != 1 || log[0] != "hello" {
		t.Errorf("its log is %q", log)
	}
	do("POST", "/jobs/"+itoa(jobs[0])+"/rerun", "", nil)
	do("POST", "/jobs/"+itoa(jobs[1])+"/cancel", "", nil)
	var all []forgejo.Job
	if do("GET", "/jobs", "", &all); len(all) != 3 || all[0].Attempt != 2 || all[1].Status != forgejo.StatusCancelled {
		t.Errorf("the jobs are %+v", all)
	}
	second := w.register(instance)
	do("DELETE", "/runners/"+itoa(second.ID), "", nil)
	var registrations []forgejo.Registration
	if do("GET", "/registrations", "", &registrations); len(registrations) != 2 || registrations[0].Why != "job reported" || registrations[1].Why != "by hand" {
		t.Errorf("the registrations are %+v", registrations)
	}
	var counts struct {
		Calls map[forgejo.Route]int `json:"calls"`
		Peak  int                   `json:"peak"`
	}
	if do("GET", "/counts", "", &counts); counts.Peak != 1 || counts.Calls[forgejo.RouteRegister] != 2 {
		t.Errorf("the counts are %+v", counts)
	}
	do("DELETE", "/counts", "", nil)
	do("PUT", "/settings", `{"version":"16.0.0","maxResponseItems":7}`, nil)
	do("POST", "/faults", `{"route":"runners","kind":"unavailable","status":500}`, nil)
	version, list := w.ask("", "GET", "/api/v1/version", ""), w.ask(w.token, "GET", instance, "")
	if !strings.Contains(version.body, "16.0.0") || list.status != 500 {
		t.Errorf("set: %+v, %+v", version, list)
	}
	do("DELETE", "/faults?route=runners&kind=unavailable", "", nil)
	var faults []forgejo.Fault
	if do("GET", "/faults", "", &faults); len(faults) != 0 || w.ask(w.token, "GET", instance, "").status != 200 {
		t.Errorf("unset: %+v", faults)
	}
	do("POST", "/offline", `{"olderThan":"1h"}`, nil)
	do("DELETE", "/repositories/evil/plans", "", nil)
	do("DELETE", "/owners/evil", "", nil)
	do("DELETE", "/tokens/"+token.Value, "", nil)
	if have := w.ask(token.Value, "GET", instance, ""); have.status != 401 || len(w.Jobs()) != 0 {
		t.Errorf("deleted: %+v, %+v", have, w.Jobs())
	}
}

func TestWhatCannotBeDoneIsSaid(t *testing.T) {
	w := newWorld(t)
	id := itoa(w.queue("a", "docker"))
	for request, body := range map[string]string{
		"POST /users": `{"name":"ann"}`, "POST /organizations": `{"name":"x","owners":["nobody"]}`, "POST /repositories": `{"owner":"nobody","name":"x"}`,
		"POST /tokens": `{"user":"ann","scopes":["fly"]}`, "POST /jobs": `{"repository":"none/none"}`, "GET /jobs/999": ``, "GET /jobs/x": ``,
		"POST /jobs/" + id + "/rerun": ``, "POST /jobs/" + id + "/unblock": ``, "DELETE /runners/999": ``, "POST /faults": `{"kind":"rain"}`,
		"POST /offline": `{}`, "POST /jobs ": `{`, "DELETE /owners/none": ``, "DELETE /repositories/none/none": ``,
	} {
		method, path, _ := strings.Cut(strings.TrimSpace(request), " ")
		if have := w.ask("", method, "/fake"+path, body); have.status != http.StatusBadRequest || !strings.Contains(have.body, "message") {
			t.Errorf("%s %s: %+v", request, body, have)
		}
	}
}
