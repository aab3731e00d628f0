package api_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

// TestContract holds the stand-in to what a pool relies on, and a real Forgejo when there is one: FORGEJO_URL is its address,
// FORGEJO_TOKEN a token of an administrator with all scopes.
func TestContract(t *testing.T) {
	t.Run("StandIn", func(t *testing.T) {
		w := newWorld(t)
		token, err := w.AddToken("root", "all")
		must(t, err)
		_, err = w.Queue(forgejo.NewJob{Repository: "acme/web", Labels: []string{"docker"}})
		must(t, err)
		contract(t, api.Config{URL: w.url, Token: token})
	})
	t.Run("Real", func(t *testing.T) {
		cfg := api.Config{URL: os.Getenv("FORGEJO_URL"), Token: os.Getenv("FORGEJO_TOKEN")}
		if cfg.URL == "" || cfg.Token == "" {
			t.Skip("FORGEJO_URL and FORGEJO_TOKEN are not set")
		}
		contract(t, cfg)
	})
}

// contract of a server, for the instance and for a user.
func contract(t *testing.T, cfg api.Config) {
	t.Helper()
	for _, scope := range []api.Scope{api.Instance(), api.User()} {
		t.Run(scope.String(), func(t *testing.T) {
			cfg.Scope = scope
			c := newClient(t, cfg)
			t.Run("Version", func(t *testing.T) { versionContract(t, c) })
			t.Run("Life", func(t *testing.T) { lifeContract(t, c) })
			t.Run("Name", func(t *testing.T) { nameContract(t, c) })
			t.Run("Jobs", func(t *testing.T) { jobsContract(t, c) })
		})
	}
	t.Run("Absence", func(t *testing.T) { absenceContract(t, cfg) })
}

func versionContract(t *testing.T, c *api.Client) {
	t.Helper()
	if v, err := c.Version(t.Context()); err != nil || !v.Supported() {
		t.Errorf("the version is %+v, %v", v, err)
	}
}

// lifeContract is a registration from its beginning to its end.
func lifeContract(t *testing.T, c *api.Client) {
	t.Helper()
	r := register(t, c, "steading-contract")
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(r.UUID) || !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(r.Token) {
		t.Errorf("registered as %s, and a token of %d characters", r, len(r.Token))
	}
	want := api.Runner{ID: r.ID, UUID: r.UUID, Name: "steading-contract", Description: "of a test", Status: api.RunnerOffline, Ephemeral: true}
	have, err := c.Runner(t.Context(), r.ID)
	must(t, err)
	if diff := cmp.Diff(want, have, cmpopts.IgnoreFields(api.Runner{}, "OwnerID", "RepoID"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("read back -want, +have:\n%s", diff)
	}
	if !listed(t, c, r.ID) {
		t.Error("it is not in the list")
	}
	must(t, c.Deregister(t.Context(), r.ID))
	if _, err := c.Runner(t.Context(), r.ID); !errors.Is(err, api.ErrGone) {
		t.Errorf("deregistered, and: %v", err)
	}
	if listed(t, c, r.ID) {
		t.Error("it is in the list still")
	}
	if err := c.Deregister(t.Context(), r.ID); err != nil {
		t.Errorf("deregistered again: %v", err)
	}
}

func nameContract(t *testing.T, c *api.Client) {
	t.Helper()
	r := register(t, c, strings.Repeat("n", 300))
	if have, err := c.Runner(t.Context(), r.ID); err != nil || have.Name != strings.Repeat("n", 255) {
		t.Errorf("a name of 300 bytes is one of %d, %v", len(have.Name), err)
	}
	if _, err := c.Register(t.Context(), "", ""); !errors.Is(err, api.ErrRefused) {
		t.Errorf("no name: %v", err)
	}
}

func jobsContract(t *testing.T, c *api.Client) {
	t.Helper()
	all, err := c.Jobs(t.Context(), nil)
	must(t, err)
	for _, j := range all {
		if j.Handle == "" || j.Status != api.JobWaiting && j.Status != api.JobRunning {
			t.Errorf("a job is %+v", j)
		}
		some, err := c.Jobs(t.Context(), j.RunsOn)
		must(t, err)
		if !slices.ContainsFunc(some, func(o api.Job) bool { return o.ID == j.ID }) && j.Status == api.JobWaiting {
			t.Errorf("job %d is not among those for %q", j.ID, j.RunsOn)
		}
	}
	if have, err := c.Jobs(t.Context(), []string{"no-job-has-this-label"}); err != nil || len(have) != 0 {
		t.Errorf("jobs of nobody: %v, %v", have, err)
	}
}

// absenceContract is how to tell what is absent.
func absenceContract(t *testing.T, cfg api.Config) {
	t.Helper()
	for _, scope := range []api.Scope{api.Organization("steading-contract-absent"), api.Repository("steading-contract-absent", "none")} {
		cfg.Scope = scope
		if _, err := newClient(t, cfg).Runner(t.Context(), 1<<40); !errors.Is(err, api.ErrScopeGone) {
			t.Errorf("%s: %v", scope, err)
		}
	}
	cfg.Scope = api.Instance()
	if _, err := newClient(t, cfg).Runner(t.Context(), 1<<40); !errors.Is(err, api.ErrGone) {
		t.Errorf("a runner that never was: %v", err)
	}
	cfg.Token = strings.Repeat("0", 40)
	if _, err := newClient(t, cfg).Runner(t.Context(), 1<<40); !errors.Is(err, api.ErrUnauthorized) {
		t.Errorf("a token that never was: %v", err)
	}
}

// register a runner until the test's end.
func register(t *testing.T, c *api.Client, name string) api.Registration {
	t.Helper()
	r, err := c.Register(t.Context(), name, "of a test")
	must(t, err)
	t.Cleanup(func() { _ = c.Deregister(context.WithoutCancel(t.Context()), r.ID) })
	return r
}

func listed(t *testing.T, c *api.Client, id int64) bool {
	t.Helper()
	all, err := c.Runners(t.Context())
	must(t, err)
	return slices.ContainsFunc(all, func(r api.Runner) bool { return r.ID == id })
}
