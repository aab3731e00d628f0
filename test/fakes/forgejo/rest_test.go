package forgejo_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steading-dev/steading/test/fakes/forgejo"
	"github.com/steading-dev/steading/test/fakes/forgejo/internal/wire"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func TestTokensAreJudgedByScopeAndUser(t *testing.T) {
	w := newWorld(t)
	must(t, w.AddUser("bob", false))
	const org, user, repo = "/api/v1/orgs/acme/actions/runners", "/api/v1/user/actions/runners", "/api/v1/repos/acme/web/actions/runners"
	body := `{"name":"one"}`
	cases := map[string]struct {
		reason string
		token  string
		method string
		path   string
		want   int
	}{
		"None":          {"A token is needed.", "", "GET", instance, 401},
		"Unknown":       {"A token is known.", "x", "GET", instance, 401},
		"UnknownPublic": {"A bad token is refused where none is needed.", "x", "GET", "/api/v1/version", 401},
		"Public":        {"The version is told to all.", "", "GET", "/api/v1/version", 200},
		"Reads":         {"Who reads needs to read.", w.tokenOf("root", "read:admin"), "GET", instance, 200},
		"Writes":        {"Who writes needs to write.", w.tokenOf("root", "read:admin"), "POST", instance, 403},
		"OtherGroup":    {"The scope is of the group.", w.tokenOf("root", "write:user", "write:organization"), "GET", instance, 403},
		"NoAdmin":       {"Scopes give no power.", w.tokenOf("ann", "all"), "GET", instance, 403},
		"Owner":         {"Owners have power.", w.tokenOf("ann", "write:organization"), "POST", org, 201},
		"NoOwner":       {"Others have none.", w.tokenOf("bob", "all"), "GET", org, 403},
		"AdminOwns":     {"Administrators own all.", w.token, "GET", org, 200},
		"NoOrg":         {"There is no such organization.", w.token, "GET", "/api/v1/orgs/none/actions/runners", 404},
		"UserIsNoOrg":   {"A user is no organization.", w.token, "GET", "/api/v1/orgs/ann/actions/runners", 404},
		"User":          {"Everyone has themselves.", w.tokenOf("bob", "write:user"), "POST", user, 201},
		"Whose":         {"A token says whose it is.", w.tokenOf("bob", "read:user"), "GET", "/api/v1/user", 200},
		"NotWhose":      {"But to none that may not read that.", w.tokenOf("bob", "write:repository"), "GET", "/api/v1/user", 403},
		"Repository":    {"The owner's owner may.", w.tokenOf("ann", "write:repository"), "POST", repo, 201},
		"Hidden":        {"What is private is not there for others.", w.tokenOf("bob", "all"), "GET", repo, 404},
		"NotTheirs":     {"What is public is there, and not theirs.", w.tokenOf("bob", "all"), "GET", "/api/v1/repos/ann/dots/actions/runners", 403},
		"NoRoute":       {"There is no such route.", w.token, "GET", "/api/v1/admin/actions/joggers", 404},
		"NoMethod":      {"There is no such method.", w.token, "PATCH", instance, 405},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if have := w.ask(tc.token, tc.method, tc.path, body); have.status != tc.want {
				t.Errorf("%s have %d: %s", tc.reason, have.status, have.body)
			}
		})
	}
	bearer := w.ask("", "GET", instance, "", "Authorization", "Bearer "+w.token)
	revoked := w.tokenOf("root", "all")
	w.RevokeToken(revoked)
	if again := w.ask(revoked, "GET", instance, ""); bearer.status != 200 || again.status != 401 {
		t.Errorf("bearer %d, revoked %d", bearer.status, again.status)
	}
}

func TestAbsenceIsSaidByTheAPIOrByTheRouter(t *testing.T) {
	w := newWorld(t)
	said := w.ask(w.token, "GET", instance+"/99", "")
	var have struct {
		Message string `json:"message"`
		URL     string `json:"url"`
	}
	decode(t, said.body, &have)
	if have.Message == "" || have.URL != w.url+"/api/swagger" {
		t.Errorf("the API says %s", said.body)
	}
	if plain := w.ask(w.token, "GET", "/api/v1/nothing", ""); !strings.HasPrefix(plain.header.Get("Content-Type"), "text/plain") {
		t.Errorf("the router says %s", plain.header)
	}
}

func TestVersionsHaveWhatTheyHad(t *testing.T) {
	cases := map[string]struct {
		reason  string
		version string
		path    string
		want    int
		body    string
	}{
		"15Runners": {"Version 15 has them.", "15.0.0", instance, 200, "[]"},
		"14Runners": {"Version 14 has not.", "14.0.0", instance, 404, ""},
		"14Jobs":    {"It has jobs, elsewhere, and lists all of them.", "14.0.0", "/api/v1/admin/runners/jobs", 200, "waits"},
		"14NewJobs": {"Not where they are now.", "14.0.0", instance + "/jobs", 404, ""},
		"13Jobs":    {"Version 13 wants labels.", "13.0.0", "/api/v1/admin/runners/jobs", 200, "null"},
		"13Labels":  {"With them it lists.", "13.0.0", "/api/v1/admin/runners/jobs?labels=docker", 200, "waits"},
		"12Jobs":    {"Version 12 has none.", "12.0.0", "/api/v1/admin/runners/jobs", 404, ""},
	}
	w := newWorld(t)
	w.queue("waits", "docker")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w.SetVersion(tc.version)
			if have := w.ask(w.token, "GET", tc.path, ""); have.status != tc.want || !strings.Contains(have.body, tc.body) {
				t.Errorf("%s have %d: %s", tc.reason, have.status, have.body)
			}
		})
	}
}

func TestJobsAreListedWhileTheyWaitOrRun(t *testing.T) {
	w := newWorld(t)
	list := func() string { return w.ask(w.token, "GET", instance+"/jobs", "").body }
	if have := list(); have != "null" {
		t.Errorf("no jobs are %s", have)
	}
	id, err := w.Queue(forgejo.NewJob{Repository: "acme/web", Labels: []string{"docker"}, Blocked: true})
	must(t, err)
	if have := list(); have != "null" {
		t.Errorf("a blocked job is listed: %s", have)
	}
	must(t, w.Unblock(id))
	handle := w.job(id).Handle
	if have := list(); !strings.Contains(have, `"task_id":0,"status":"waiting"`) || !strings.Contains(have, `"needs":null`) || !strings.Contains(have, handle) {
		t.Errorf("a waiting job is %s", have)
	}
	r := w.register(instance, "docker")
	task := r.fetch()
	if have := list(); !strings.Contains(have, fmt.Sprintf(`"task_id":%d,"status":"running"`, task.ID)) {
		t.Errorf("a running job is %s", have)
	}
	r.report(task, wire.Failure)
	if have := list(); have != "null" {
		t.Errorf("a finished job is listed: %s", have)
	}
	must(t, w.Rerun(id))
	if again := w.job(id); again.Attempt != 2 || again.Handle == handle || again.Status != forgejo.StatusWaiting || again.Runs[0].Status != forgejo.StatusFailure {
		t.Errorf("it is run again as %+v", again)
	}
}

func TestRunnersArePaged(t *testing.T) {
	w := newWorld(t)
	for range 70 {
		w.register(instance)
	}
	cases := map[string]struct {
		reason string
		query  string
		want   int
		next   bool
	}{
		"Default": {"A page has 30.", "", 30, true},
		"Clipped": {"No page has more than 50.", "?limit=100", 50, true},
		"Second":  {"The rest is on the second.", "?limit=50&page=2", 20, false},
		"Third":   {"There is no third.", "?limit=50&page=3", 0, false},
		"Zero":    {"Pages count from one.", "?limit=50&page=0", 50, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			have := w.ask(w.token, "GET", instance+tc.query, "")
			var list []struct{}
			decode(t, have.body, &list)
			if next := strings.Contains(have.header.Get("Link"), `rel="next"`); len(list) != tc.want || next != tc.next || have.header.Get("X-Total-Count") != "70" {
				t.Errorf("%s have %d, next %t, of %s", tc.reason, len(list), next, have.header.Get("X-Total-Count"))
			}
		})
	}
}

// TestRunnersAreInTheOrderOfLastSeen so that a list may miss one while it is read.
func TestRunnersAreInTheOrderOfLastSeen(t *testing.T) {
	w := newWorld(t)
	first, second := w.register(instance, "a"), w.register(instance)
	page := func(n int) []runner {
		var list []runner
		decode(t, w.ask(w.token, "GET", instance+"?limit=1&page="+strconv.Itoa(n), "").body, &list)
		return list
	}
	if one := page(1); one[0].ID != first.ID {
		t.Errorf("the first is %d", one[0].ID)
	}
	w.clock.Step(time.Second)
	second.must("Declare", wire.DeclareRequest{Labels: []string{"a"}}, nil)
	if two := page(2); two[0].ID != first.ID {
		t.Errorf("the second is still %d, and was missed by nobody", two[0].ID)
	}
}

func TestScopesSeeTheirOwnAndWhatServesThem(t *testing.T) {
	w := newWorld(t)
	const org, repo = "/api/v1/orgs/acme/actions/runners", "/api/v1/repos/acme/web/actions/runners"
	all, ours, its := w.register(instance), w.register(org), w.register(repo)
	ids := func(path string) []int64 {
		var list []runner
		decode(t, w.ask(w.token, "GET", path, "").body, &list)
		have := []int64{}
		for _, r := range list {
			have = append(have, r.ID)
		}
		return have
	}
	for path, want := range map[string][]int64{
		instance:               {all.ID, ours.ID, its.ID},
		org:                    {ours.ID},
		org + "?visible=true":  {all.ID, ours.ID},
		repo:                   {its.ID},
		repo + "?visible=true": {all.ID, ours.ID, its.ID},
		"/api/v1/user" + instance[len("/api/v1/admin"):]: {},
	} {
		if diff := cmp.Diff(want, ids(path)); diff != "" {
			t.Errorf("%s -want, +have:\n%s", path, diff)
		}
	}
	for path, want := range map[string]int{org + "/" + itoa(all.ID): 200, org + "/" + itoa(its.ID): 404, repo + "/" + itoa(ours.ID): 200} {
		if have := w.ask(w.token, "GET", path, ""); have.status != want {
			t.Errorf("%s is %d", path, have.status)
		}
	}
	if have := w.ask(w.token, "DELETE", org+"/"+itoa(all.ID), ""); have.status != 404 || all.status() == "gone" {
		t.Errorf("what is seen may not be deleted: %d", have.status)
	}
	if have := w.ask(w.token, "DELETE", instance+"/"+itoa(its.ID), ""); have.status != 204 || its.status() != "gone" {
		t.Errorf("an administrator may delete all: %d", have.status)
	}
}

func TestRegistrationHasWhatForgejoGives(t *testing.T) {
	w := newWorld(t)
	name := strings.Repeat("a", 254) + "äb"
	answer := w.ask(w.token, "POST", instance, fmt.Sprintf(`{"name":%q,"description":"of pool 7","ephemeral":true}`, name))
	if strings.Contains(answer.body, "ephemeral") {
		t.Errorf("the answer says too much: %s", answer.body)
	}
	var r runner
	decode(t, answer.body, &r)
	have := w.Registrations()[0]
	if len(r.Token) != 40 || have.UUID != r.UUID || have.Name != name[:254] || have.Description != "of pool 7" || !have.Ephemeral || have.Scope != "instance" {
		t.Errorf("registered %+v as %+v", r, have)
	}
	for body, want := range map[string]int{`{}`: 422, `{"name":`: 422} {
		if have := w.ask(w.token, "POST", instance, body); have.status != want {
			t.Errorf("%s is %d", body, have.status)
		}
	}
}

func TestDeletedRunnersKeepTheirRowAndLoseTheirName(t *testing.T) {
	w := newWorld(t)
	r := w.register(instance, "docker")
	path := instance + "/" + itoa(r.ID)
	if first, again := w.ask(w.token, "DELETE", path, ""), w.ask(w.token, "DELETE", path, ""); first.status != 204 || again.status != 404 {
		t.Errorf("deleted: %d, then %d", first.status, again.status)
	}
	if have := r.call("FetchTask", wire.FetchTaskRequest{}, nil); have.status != 401 || have.body != `{"code":"unauthenticated","message":"unregistered runner"}` {
		t.Errorf("its credential is answered by %d: %s", have.status, have.body)
	}
	if have := w.Registrations(); len(have) != 1 || have[0].UUID != r.UUID || have[0].Why != "api" || have[0].Status != "" {
		t.Errorf("history says %+v", have)
	}
}

func TestPeakIsTheMostAtOnce(t *testing.T) {
	w := newWorld(t)
	first := w.register(instance)
	w.register(instance)
	must(t, w.DeleteRunner(first.ID))
	w.register(instance)
	if have := w.PeakRegistrations(); have != 2 {
		t.Errorf("the peak is %d", have)
	}
	must(t, w.DeleteRunner(w.Registrations()[1].ID))
	w.ResetCounts()
	if have := w.PeakRegistrations(); have != 1 {
		t.Errorf("the peak from now on is %d", have)
	}
}

func TestFaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  forgejo.Fault
		want   int
		body   string
	}{
		"Unavailable":  {"503 unless another is wanted.", forgejo.Fault{Kind: forgejo.FaultUnavailable}, 503, "message"},
		"Status":       {"Another may be wanted.", forgejo.Fault{Kind: forgejo.FaultUnavailable, Status: 502}, 502, "message"},
		"HTML":         {"A page that is well.", forgejo.Fault{Kind: forgejo.FaultHTML}, 200, "<html>"},
		"HTMLNotFound": {"A page that is not.", forgejo.Fault{Kind: forgejo.FaultHTML, Status: 404}, 404, "<html>"},
		"Unauthorized": {"A token is refused.", forgejo.Fault{Kind: forgejo.FaultUnauthorized}, 401, "url"},
		"Forbidden":    {"A token may not.", forgejo.Fault{Kind: forgejo.FaultForbidden}, 403, "url"},
		"Redirect":     {"It is elsewhere.", forgejo.Fault{Kind: forgejo.FaultRedirect}, 307, ""},
		"Empty":        {"A list is empty.", forgejo.Fault{Kind: forgejo.FaultEmpty}, 200, "[]"},
		"OtherRoute":   {"Another route is none of this one's.", forgejo.Fault{Route: forgejo.RouteJobs, Kind: forgejo.FaultUnavailable}, 200, "one"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.register(instance)
			must(t, w.SetFault(tc.fault))
			if have := w.ask(w.token, "GET", instance, ""); have.status != tc.want || !strings.Contains(have.body, tc.body) {
				t.Errorf("%s have %d: %s", tc.reason, have.status, have.body)
			}
			w.UnsetFaults(tc.fault.Route, tc.fault.Kind)
			if have := w.ask(w.token, "GET", instance, ""); have.status != 200 || !strings.Contains(have.body, "one") || len(w.Faults()) != 0 {
				t.Errorf("it is unset, and: %d: %s", have.status, have.body)
			}
		})
	}
	w := newWorld(t)
	if w.SetFault(forgejo.Fault{Kind: "rain"}) == nil || w.SetFault(forgejo.Fault{Route: "moon", Kind: forgejo.FaultHang}) == nil {
		t.Error("what is unknown is set")
	}
}

func TestFaultsOfListsChangeThem(t *testing.T) {
	w := newWorld(t)
	first, second := w.register(instance), w.register(instance)
	cases := map[string]struct {
		reason string
		fault  forgejo.Fault
		want   []int64
	}{
		"Omit":      {"One is left out.", forgejo.Fault{Kind: forgejo.FaultOmit, Runner: first.ID}, []int64{second.ID}},
		"Duplicate": {"All are there twice.", forgejo.Fault{Kind: forgejo.FaultDuplicate}, []int64{first.ID, first.ID, second.ID, second.ID}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.fault.Times = 1
			must(t, w.SetFault(tc.fault))
			for _, want := range [][]int64{tc.want, {first.ID, second.ID}} {
				var list []runner
				var have []int64
				decode(t, w.ask(w.token, "GET", instance, "").body, &list)
				for _, r := range list {
					have = append(have, r.ID)
				}
				if diff := cmp.Diff(want, have); diff != "" {
					t.Errorf("%s -want, +have:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func TestTruncatedAnswersAreHalf(t *testing.T) {
	w := newWorld(t)
	w.register(instance)
	whole := w.ask(w.token, "GET", instance, "").body
	must(t, w.SetFault(forgejo.Fault{Kind: forgejo.FaultTruncated}))
	if have := w.ask(w.token, "GET", instance, ""); have.body != whole[:len(whole)/2] || have.status != http.StatusOK {
		t.Errorf("have %+v", have)
	}
}

// TestLostAnswersAreDone as far as the server goes.
func TestLostAnswersAreDone(t *testing.T) {
	w := newWorld(t)
	must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteRegister, Kind: forgejo.FaultLost, Times: 1}))
	if have, err := w.try(w.token, "POST", instance, `{"name":"one"}`); err == nil {
		t.Errorf("have %+v", have)
	}
	if len(w.Registrations()) != 1 {
		t.Error("it is not registered")
	}
}

func TestHangEndsWhenItIsUnset(t *testing.T) {
	w := newWorld(t)
	must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteRunners, Kind: forgejo.FaultHang}))
	done := make(chan int)
	go func() {
		have, _ := w.try(w.token, "GET", instance, "")
		done <- have.status
	}()
	for w.Calls()[forgejo.RouteRunners] == 0 {
		time.Sleep(time.Millisecond)
	}
	select {
	case status := <-done:
		t.Errorf("it does not hang: %d", status)
	default:
	}
	w.UnsetFaults("", "")
	if status := <-done; status != http.StatusOK {
		t.Errorf("it went on with %d", status)
	}
}

func TestCallsAreCountedByRoute(t *testing.T) {
	w := newWorld(t)
	r := w.register(instance, "docker")
	r.fetch()
	w.ask(w.token, "GET", instance+"/jobs?labels="+url.QueryEscape("a,b"), "")
	w.ask(w.token, "GET", "/api/v1/orgs/acme/actions/runners/jobs", "")
	want := map[forgejo.Route]int{forgejo.RouteRegister: 1, forgejo.RouteDeclare: 1, forgejo.RouteFetchTask: 1, forgejo.RouteJobs: 2}
	if diff := cmp.Diff(want, w.Calls()); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
	if w.ResetCounts(); len(w.Calls()) != 0 {
		t.Error("they are not reset")
	}
}
