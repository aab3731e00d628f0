package api_test

import (
	"net/http/httptest"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

// A world is a Forgejo with an organization acme, owned by ann, its repository web, and bob, who owns nothing.
type world struct {
	*forgejo.Server
	url   string
	clock *clocktesting.FakeClock
}

func newWorld(t *testing.T) world {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	w := world{Server: forgejo.New(forgejo.Options{Clock: clock}), clock: clock}
	must(t, w.AddUser("root", true))
	must(t, w.AddUser("ann", false))
	must(t, w.AddUser("bob", false))
	must(t, w.AddOrganization("acme", "ann"))
	must(t, w.AddRepository("acme", "web", false))
	must(t, w.AddRepository("ann", "dots", false))
	srv := httptest.NewServer(w)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { w.UnsetFaults("", "") }) // What hangs goes on, or the server would not close.
	w.url = srv.URL
	return w
}

// client of a scope with a new token of a user.
func (w world) client(t *testing.T, scope api.Scope, user string, scopes ...string) *api.Client {
	t.Helper()
	token, err := w.AddToken(user, scopes...)
	must(t, err)
	return newClient(t, api.Config{URL: w.url, Token: token, Scope: scope})
}

// admin is a client of the instance.
func (w world) admin(t *testing.T) *api.Client {
	t.Helper()
	return w.client(t, api.Instance(), "root", "write:admin")
}

func newClient(t *testing.T, cfg api.Config) *api.Client {
	t.Helper()
	c, err := api.New(cfg)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
