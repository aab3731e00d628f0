package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

func TestEachScopeRegistersItsOwn(t *testing.T) {
	w := newWorld(t)
	cases := map[string]struct {
		reason string
		scope  api.Scope
		user   string
		token  string
		want   string
	}{
		"Instance":     {"An administrator registers for all.", api.Instance(), "root", "write:admin", "instance"},
		"Organization": {"An owner registers for the organization.", api.Organization("acme"), "ann", "write:organization", "acme"},
		"User":         {"Users register for themselves.", api.User(), "bob", "write:user", "bob"},
		"Repository":   {"An administrator of the repository registers for it.", api.Repository("acme", "web"), "ann", "write:repository", "acme/web"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := w.client(t, tc.scope, tc.user, tc.token)
			r, err := c.Register(t.Context(), "one", "of "+name)
			must(t, err)
			have, err := c.Runner(t.Context(), r.ID)
			must(t, err)
			want := api.Runner{ID: r.ID, UUID: r.UUID, Name: "one", Description: "of " + name, Status: api.RunnerOffline, Ephemeral: true}
			if diff := cmp.Diff(want, have, cmpopts.IgnoreFields(api.Runner{}, "OwnerID", "RepoID")); diff != "" {
				t.Errorf("%s -want, +have:\n%s", tc.reason, diff)
			}
			all := w.Registrations()
			if have := all[len(all)-1].Scope; have != tc.want {
				t.Errorf("%s It is registered for %s", tc.reason, have)
			}
			must(t, c.Deregister(t.Context(), r.ID))
			if _, err := c.Runner(t.Context(), r.ID); !errors.Is(err, api.ErrGone) {
				t.Errorf("it is deregistered, and: %v", err)
			}
			if err := c.Deregister(t.Context(), r.ID); err != nil {
				t.Errorf("what is gone is deregistered: %v", err)
			}
		})
	}
}

// TestTheUserIsTold where it is the scope, to a token that may know.
func TestTheUserIsTold(t *testing.T) {
	w := newWorld(t)
	bob := w.client(t, api.User(), "bob", "write:user")
	r, err := bob.Register(t.Context(), "one", "")
	must(t, err)
	listed, err := bob.Runner(t.Context(), r.ID)
	must(t, err)
	if id, err := bob.User(t.Context()); err != nil || id == 0 || id != listed.OwnerID {
		t.Errorf("the user is %d, %v, and the runner's owner %d", id, err, listed.OwnerID)
	}
	if _, err := w.client(t, api.User(), "bob", "write:repository").User(t.Context()); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("a token that may not read the user: %v", err)
	}
	w.ResetCounts()
	if id, err := w.client(t, api.Organization("acme"), "ann", "all").User(t.Context()); err != nil || id != 0 || w.Calls()[forgejo.RouteUser] != 0 {
		t.Errorf("an organization is the scope whoever asks: %d, %v", id, err)
	}
}

func TestVersion(t *testing.T) {
	cases := map[string]struct {
		reason    string
		text      string
		want      int
		supported bool
	}{
		"Release":     {"The first that registers runners.", "15.0.0+gitea-1.22.0", 15, true},
		"Development": {"What is newer is supported.", "16.0.0-dev-102-a1b2c3d+gitea-1.22.0", 16, true},
		"Old":         {"What is older is not.", "14.0.3+gitea-1.22.0", 14, false},
		"Gitea":       {"Gitea's numbers are others.", "1.25.1", 1, false},
	}
	w := newWorld(t)
	c := w.admin(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w.SetVersion(tc.text)
			have, err := c.Version(t.Context())
			must(t, err)
			if diff := cmp.Diff(api.Version{Text: tc.text, Major: tc.want}, have); diff != "" || have.Supported() != tc.supported {
				t.Errorf("%s supported %t -want, +have:\n%s", tc.reason, have.Supported(), diff)
			}
		})
	}
	w.SetVersion("fifteen")
	if _, err := c.Version(t.Context()); !errors.Is(err, api.ErrNotForgejo) {
		t.Errorf("what is no version: %v", err)
	}
}

func TestJobsByLabels(t *testing.T) {
	w := newWorld(t)
	c := w.admin(t)
	if have, err := c.Jobs(t.Context(), nil); err != nil || len(have) != 0 {
		t.Errorf("null is no jobs: %v, %v", have, err)
	}
	queue := func(repository, name string, labels ...string) {
		_, err := w.Queue(forgejo.NewJob{Repository: repository, Name: name, Labels: labels})
		must(t, err)
	}
	queue("acme/web", "docker", "docker")
	queue("acme/web", "both", "docker", "arm")
	queue("acme/web", "none")
	queue("ann/dots", "elsewhere", "docker")
	cases := map[string]struct {
		reason string
		client *api.Client
		labels []string
		want   []string
	}{
		"All":          {"Without labels all are listed.", c, nil, []string{"docker", "both", "none", "elsewhere"}},
		"One":          {"All labels of a job have to be served.", c, []string{"docker"}, []string{"docker", "elsewhere"}},
		"Two":          {"More may be served than a job asks for.", c, []string{"arm", "docker"}, []string{"docker", "both", "elsewhere"}},
		"No":           {"No labels are not the same as none said.", c, []string{}, []string{"none"}},
		"Unknown":      {"Nothing matches, and that is null.", c, []string{"windows"}, nil},
		"Organization": {"An organization has its own.", w.client(t, api.Organization("acme"), "ann", "read:organization"), []string{"docker"}, []string{"docker"}},
		"Repository":   {"A repository has its own.", w.client(t, api.Repository("ann", "dots"), "ann", "read:repository"), nil, []string{"elsewhere"}},
		"User":         {"A user has their own.", w.client(t, api.User(), "ann", "read:user"), nil, []string{"elsewhere"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			jobs, err := tc.client.Jobs(t.Context(), tc.labels)
			must(t, err)
			var have []string
			for _, j := range jobs {
				have = append(have, j.Name)
				if j.Status != api.JobWaiting || j.Handle == "" || j.Attempt != 1 {
					t.Errorf("a job that waits is %+v", j)
				}
			}
			if diff := cmp.Diff(tc.want, have); diff != "" {
				t.Errorf("%s -want, +have:\n%s", tc.reason, diff)
			}
		})
	}
	if _, err := c.Jobs(t.Context(), []string{"a,b"}); err == nil {
		t.Error("a comma would make two labels of one")
	}
}

// TestRunnersAreAllListed whatever the server says of its pages.
func TestRunnersAreAllListed(t *testing.T) {
	cases := map[string]struct {
		reason  string
		runners int
		perPage int
		fault   forgejo.FaultKind
	}{
		"None":         {"An empty list ends at once.", 0, 50, ""},
		"OnePage":      {"A full page is not the last.", 50, 50, ""},
		"ManyPages":    {"Pages are read to the end.", 123, 50, ""},
		"Clipped":      {"Pages may be shorter than asked for.", 95, 30, ""},
		"WrongTotal":   {"The total is not believed.", 123, 50, forgejo.FaultWrongTotal},
		"WrongClipped": {"Nor where pages are short.", 95, 30, forgejo.FaultWrongTotal},
		"Twice":        {"Who is listed twice is there once.", 60, 50, forgejo.FaultDuplicate},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.SetMaxResponseItems(tc.perPage)
			c := w.admin(t)
			var want []int64
			for n := range tc.runners {
				r, err := c.Register(t.Context(), fmt.Sprintf("r%d", n), "")
				must(t, err)
				want = append(want, r.ID)
			}
			if tc.fault != "" {
				must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteRunners, Kind: tc.fault}))
			}
			list, err := c.Runners(t.Context())
			must(t, err)
			var have []int64
			for _, r := range list {
				have = append(have, r.ID)
			}
			slices.Sort(have)
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("%s -want, +have:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPagesThatRepeatAreAnError(t *testing.T) {
	w := newWorld(t)
	c := w.admin(t)
	_, err := c.Register(t.Context(), "one", "")
	must(t, err)
	must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteRunners, Kind: forgejo.FaultSamePage}))
	if _, err := c.Runners(t.Context()); !errors.Is(err, api.ErrNotForgejo) {
		t.Errorf("the first page for ever: %v", err)
	}
	if n := w.Calls()[forgejo.RouteRunners]; n > 5 {
		t.Errorf("it asked %d times", n)
	}
}

// TestGoneIsOnlyWhatTheAPISays of a runner that is there, or is not.
func TestGoneIsOnlyWhatTheAPISays(t *testing.T) {
	route := func(kind forgejo.FaultKind, status int, routes ...forgejo.Route) func(world) error {
		return func(w world) error {
			var errs []error
			for _, r := range routes {
				errs = append(errs, w.SetFault(forgejo.Fault{Route: r, Kind: kind, Status: status}))
			}
			return errors.Join(errs...)
		}
	}
	remove := func(w world) error { return w.DeleteRunner(w.Registrations()[0].ID) }
	then := func(fs ...func(world) error) func(world) error {
		return func(w world) error {
			for _, f := range fs {
				if err := f(w); err != nil {
					return err
				}
			}
			return nil
		}
	}
	cases := map[string]struct {
		reason string
		do     func(world) error
		want   error
	}{
		"There":   {"It is there.", func(world) error { return nil }, nil},
		"Deleted": {"It was deleted.", remove, api.ErrGone},
		"ListOmits": {"A list proves nothing.", func(w world) error {
			return w.SetFault(forgejo.Fault{Kind: forgejo.FaultOmit, Runner: w.Registrations()[0].ID})
		}, nil},
		"ProxyPage":       {"A proxy's 404 is no word of Forgejo's.", route(forgejo.FaultHTML, 404, forgejo.RouteRunner), api.ErrNotForgejo},
		"ProxyWelcome":    {"Nor is its 200.", route(forgejo.FaultHTML, 200, forgejo.RouteRunner), api.ErrNotForgejo},
		"Unavailable":     {"A server in trouble says nothing.", route(forgejo.FaultUnavailable, 500, forgejo.RouteRunner), api.ErrUnavailable},
		"Unauthorized":    {"A refused token says nothing.", route(forgejo.FaultUnauthorized, 0, forgejo.RouteRunner), api.ErrUnauthorized},
		"Truncated":       {"Half an answer is none.", route(forgejo.FaultTruncated, 0, forgejo.RouteRunner), api.ErrNotForgejo},
		"TruncatedGone":   {"Half a 404 is none.", then(remove, route(forgejo.FaultTruncated, 0, forgejo.RouteRunner)), api.ErrNotForgejo},
		"Unconfirmed":     {"What cannot be confirmed is not gone.", then(remove, route(forgejo.FaultUnavailable, 0, forgejo.RouteRunners)), api.ErrUnavailable},
		"UnconfirmedPage": {"A page confirms nothing.", then(remove, route(forgejo.FaultHTML, 200, forgejo.RouteRunners)), api.ErrNotForgejo},
		"Organization":    {"The organization was deleted.", func(w world) error { return w.DeleteOwner("acme") }, api.ErrScopeGone},
		"Silence":         {"The scope is absent, and the version unknown.", then(func(w world) error { return w.DeleteOwner("acme") }, route(forgejo.FaultUnavailable, 0, forgejo.RouteVersion)), api.ErrUnavailable},
		"Downgraded":      {"The server is another one now.", func(w world) error { w.SetVersion("14.0.1"); return nil }, api.ErrUnsupported},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.client(t, api.Organization("acme"), "ann", "write:organization")
			r, err := c.Register(t.Context(), "one", "")
			must(t, err)
			must(t, tc.do(w))
			if _, err := c.Runner(t.Context(), r.ID); !errors.Is(err, tc.want) || errors.Is(err, api.ErrGone) != (tc.want == api.ErrGone) { //nolint:errorlint // The very one.
				t.Errorf("%s have %v", tc.reason, err)
			}
		})
	}
}

// TestRepositoryIsNotItsRunner says that a repository is gone, and not that its runner is.
func TestRepositoryIsNotItsRunner(t *testing.T) {
	w := newWorld(t)
	c := w.client(t, api.Repository("acme", "web"), "ann", "write:repository")
	r, err := c.Register(t.Context(), "one", "")
	must(t, err)
	must(t, w.DeleteRepository("acme", "web"))
	if _, err := c.Runner(t.Context(), r.ID); !errors.Is(err, api.ErrScopeGone) {
		t.Errorf("have %v", err)
	}
	if err := c.Deregister(t.Context(), r.ID); err != nil {
		t.Errorf("its runner went with it: %v", err)
	}
}

// TestErrorsSayWhatTheyAre and what to do, on every call.
func TestErrorsSayWhatTheyAre(t *testing.T) {
	w := newWorld(t)
	known := w.client(t, api.Organization("acme"), "ann", "write:organization")
	fault := func(f forgejo.Fault) func(*testing.T) *api.Client {
		return func(t *testing.T) *api.Client {
			t.Helper()
			must(t, w.SetFault(f))
			return known
		}
	}
	cases := map[string]struct {
		reason string
		client func(*testing.T) *api.Client
		want   error
		says   string
	}{
		"NoToken": {"A token of another server.", func(t *testing.T) *api.Client {
			return newClient(t, api.Config{URL: w.url, Token: "nobody", Scope: api.Instance()})
		}, api.ErrUnauthorized, "admin"},
		"NoScope":      {"A token that may do other things.", func(t *testing.T) *api.Client { return w.client(t, api.Instance(), "root", "write:user") }, api.ErrForbidden, "admin"},
		"NoAdmin":      {"A token of a user without power.", func(t *testing.T) *api.Client { return w.client(t, api.Instance(), "ann", "all") }, api.ErrForbidden, "of an administrator of Forgejo"},
		"NoOwner":      {"A token of one who owns nothing.", func(t *testing.T) *api.Client { return w.client(t, api.Organization("acme"), "bob", "all") }, api.ErrForbidden, "organization, of an owner"},
		"NotTheirs":    {"A repository that is another's.", func(t *testing.T) *api.Client { return w.client(t, api.Repository("acme", "web"), "bob", "all") }, api.ErrForbidden, "repository, of an administrator"},
		"NoSuchOrg":    {"An organization that is not there.", func(t *testing.T) *api.Client { return w.client(t, api.Organization("none"), "ann", "all") }, api.ErrScopeGone, "organization none is not there"},
		"Forbidden":    {"The API refuses.", fault(forgejo.Fault{Kind: forgejo.FaultForbidden}), api.ErrForbidden, "organization, of an owner"},
		"Unauthorized": {"The API refuses the token.", fault(forgejo.Fault{Kind: forgejo.FaultUnauthorized}), api.ErrUnauthorized, "make a new one"},
		"Unavailable":  {"The server is in trouble.", fault(forgejo.Fault{Kind: forgejo.FaultUnavailable}), api.ErrUnavailable, "503"},
		"Busy":         {"The server has enough.", fault(forgejo.Fault{Kind: forgejo.FaultUnavailable, Status: http.StatusTooManyRequests}), api.ErrUnavailable, "429"},
		"Lost":         {"The connection is cut.", fault(forgejo.Fault{Kind: forgejo.FaultLost}), api.ErrUnavailable, "cannot"},
		"Page":         {"A web page.", fault(forgejo.Fault{Kind: forgejo.FaultHTML}), api.ErrNotForgejo, "cannot"},
		"PageRefuses":  {"A proxy refuses, and not Forgejo.", fault(forgejo.Fault{Kind: forgejo.FaultHTML, Status: http.StatusForbidden}), api.ErrNotForgejo, "not Forgejo's API"},
		"PageNotFound": {"A web page that was not found.", fault(forgejo.Fault{Kind: forgejo.FaultHTML, Status: http.StatusNotFound}), api.ErrNotForgejo, "not Forgejo's API"},
		"Redirect":     {"Redirects are not followed.", fault(forgejo.Fault{Kind: forgejo.FaultRedirect}), api.ErrNotForgejo, "redirects"},
		"Old":          {"The server is too old.", func(*testing.T) *api.Client { w.SetVersion("14.0.2+gitea-1.22.0"); return known }, api.ErrUnsupported, "14.0.2+gitea-1.22.0, and runners take Forgejo 15"},
		"Ancient":      {"Nor has it the jobs.", func(*testing.T) *api.Client { w.SetVersion("11.0.9"); return known }, api.ErrUnsupported, "15"},
	}
	calls := map[string]func(context.Context, *api.Client) error{
		"Jobs":     func(ctx context.Context, c *api.Client) error { _, err := c.Jobs(ctx, nil); return err },
		"Runners":  func(ctx context.Context, c *api.Client) error { _, err := c.Runners(ctx); return err },
		"Runner":   func(ctx context.Context, c *api.Client) error { _, err := c.Runner(ctx, 7); return err },
		"Register": func(ctx context.Context, c *api.Client) error { _, err := c.Register(ctx, "one", ""); return err },
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { w.UnsetFaults("", ""); w.SetVersion(forgejo.DefaultVersion) })
			c := tc.client(t)
			for call, do := range calls {
				if name == "Old" && call == "Jobs" {
					continue // Version 14 lists them.
				}
				if err := do(t.Context(), c); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%s %s: have %v", tc.reason, call, err)
				}
			}
		})
	}
}

func TestPermissionIsTheCalls(t *testing.T) {
	w := newWorld(t)
	c := w.client(t, api.Organization("acme"), "ann", "read:organization")
	if _, err := c.Runners(t.Context()); err != nil {
		t.Errorf("reading is allowed: %v", err)
	}
	if _, err := c.Register(t.Context(), "one", ""); !errors.Is(err, api.ErrForbidden) || !strings.Contains(err.Error(), "write:organization") {
		t.Errorf("writing is not: %v", err)
	}
}

// TestListsThatAreCutAreNoLists however little is missing.
func TestListsThatAreCutAreNoLists(t *testing.T) {
	w := newWorld(t)
	c := w.admin(t)
	for n := range 4 {
		_, err := c.Register(t.Context(), strconv.Itoa(n), "")
		must(t, err)
		_, err = w.Queue(forgejo.NewJob{Repository: "acme/web", Labels: []string{"docker"}})
		must(t, err)
	}
	must(t, w.SetFault(forgejo.Fault{Kind: forgejo.FaultTruncated}))
	if have, err := c.Jobs(t.Context(), nil); !errors.Is(err, api.ErrNotForgejo) || have != nil {
		t.Errorf("half of the jobs: %v, %v", have, err)
	}
	if have, err := c.Runners(t.Context()); !errors.Is(err, api.ErrNotForgejo) || have != nil {
		t.Errorf("half of the runners: %v, %v", have, err)
	}
}

func TestRegistrationWhoseAnswerIsLost(t *testing.T) {
	w := newWorld(t)
	c := w.admin(t)
	must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteRegister, Kind: forgejo.FaultLost, Times: 1}))
	if _, err := c.Register(t.Context(), "one", "of pool 7"); !errors.Is(err, api.ErrUnavailable) {
		t.Fatalf("the answer is lost: %v", err)
	}
	list, err := c.Runners(t.Context())
	must(t, err)
	if len(list) != 1 || list[0].Description != "of pool 7" {
		t.Errorf("it is registered all the same, once: %v", list)
	}
}

func TestEphemeralIsReadBack(t *testing.T) {
	w := newWorld(t)
	c := w.admin(t)
	must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteRegister, Kind: forgejo.FaultIgnoreEphemeral}))
	r, err := c.Register(t.Context(), "one", "")
	must(t, err)
	if have, err := c.Runner(t.Context(), r.ID); err != nil || have.Ephemeral {
		t.Errorf("the server ignored what was asked for: %+v, %v", have, err)
	}
}

func TestNameIsRefused(t *testing.T) {
	c := newWorld(t).admin(t)
	if _, err := c.Register(t.Context(), "", ""); !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "Required") {
		t.Errorf("have %v", err)
	}
}

func TestDeregisterSaysWhenItDidNot(t *testing.T) {
	w := newWorld(t)
	c := w.admin(t)
	r, err := c.Register(t.Context(), "one", "")
	must(t, err)
	for kind, want := range map[forgejo.FaultKind]error{
		forgejo.FaultUnavailable: api.ErrUnavailable, forgejo.FaultHTML: api.ErrNotForgejo, forgejo.FaultForbidden: api.ErrForbidden,
	} {
		must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteDeregister, Kind: kind, Status: http.StatusNotFound, Times: 1}))
		if kind == forgejo.FaultUnavailable {
			must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteDeregister, Kind: kind, Status: http.StatusInternalServerError, Times: 1}))
		}
		if err := c.Deregister(t.Context(), r.ID); !errors.Is(err, want) {
			t.Errorf("%s: have %v", kind, err)
		}
	}
	if _, err := c.Runner(t.Context(), r.ID); err != nil {
		t.Errorf("it is there still: %v", err)
	}
}

func TestCallerGivesUp(t *testing.T) {
	w := newWorld(t)
	token, err := w.AddToken("root", "all")
	must(t, err)
	results := make(chan string, 1)
	c := newClient(t, api.Config{URL: w.url, Token: token, Scope: api.Instance(), Observe: func(_, result string, _ time.Duration) { results <- result }})
	must(t, w.SetFault(forgejo.Fault{Kind: forgejo.FaultHang}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := c.Jobs(ctx, nil)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || <-results != api.ResultCanceled {
		t.Errorf("have %v", err)
	}
}
