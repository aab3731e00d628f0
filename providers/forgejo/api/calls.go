package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Version of the server. It may be one that is not supported.
func (c *Client) Version(ctx context.Context) (Version, error) {
	var v Version
	err := c.do(ctx, call{operation: OperationVersion, method: http.MethodGet, path: "/version", want: http.StatusOK, decode: func(body []byte) error {
		return decodeVersion(body, &v)
	}})
	if err != nil {
		return Version{}, c.wrap("read the version", settle(err))
	}
	return v, nil
}

// User whose token it is, by its id, where that is the scope. Zero in all other scopes, which are named and need not be asked for.
func (c *Client) User(ctx context.Context) (int64, error) {
	if c.scope.group != user {
		return 0, nil
	}
	var id int64
	err := c.do(ctx, call{operation: OperationUser, method: http.MethodGet, path: "/user", want: http.StatusOK, decode: func(body []byte) error {
		return decodeUser(body, &id)
	}})
	if err != nil {
		return 0, c.wrap("read the id", settle(err))
	}
	return id, nil
}

// Jobs of the scope that wait for a runner or have one, and of them only those all of whose labels are in labels. Nil
// labels: all jobs. No labels: those that ask for none.
func (c *Client) Jobs(ctx context.Context, labels []string) ([]Job, error) {
	path := c.scope.prefix() + "/jobs"
	if labels != nil {
		for _, l := range labels {
			if strings.Contains(l, ",") {
				return nil, fmt.Errorf("cannot list jobs by the label %q: labels have no commas", l)
			}
		}
		path += "?" + url.Values{"labels": {strings.Join(labels, ",")}}.Encode()
	}
	var jobs []Job
	err := c.do(ctx, call{operation: OperationJobs, method: http.MethodGet, path: path, want: http.StatusOK, most: maxJobs, decode: func(body []byte) error {
		return decodeList(body, &jobs)
	}})
	if err != nil {
		return nil, c.wrap("list the jobs", c.explain(ctx, err))
	}
	return jobs, nil
}

// Runner reads one registration. The error is [ErrGone] when the API itself says that there is none, in a scope that it
// lists. It reads registrations of wider scopes too, which the scope's jobs may run on.
func (c *Client) Runner(ctx context.Context, id int64) (Runner, error) {
	doing := fmt.Sprintf("read runner %d", id)
	var r Runner
	err := c.do(ctx, call{operation: OperationRunner, method: http.MethodGet, path: c.runner(id), want: http.StatusOK, decode: func(body []byte) error {
		return decodeOne(body, &r)
	}})
	switch {
	case err == nil && r.ID != id:
		return Runner{}, c.wrap(doing, failed(ErrNotForgejo, "it answers with runner %d", r.ID))
	case err == nil:
		return r, nil
	case !errors.Is(err, errAbsent):
		return Runner{}, c.wrap(doing, c.explain(ctx, err))
	}
	// The same answer is given when it is the organization or the repository that is not there.
	if _, err := c.page(ctx, 1, 1); err != nil {
		return Runner{}, c.wrap(doing, c.explain(ctx, err))
	}
	return Runner{}, c.wrap(doing, ErrGone)
}

// Register a runner that takes one job. The name must not be empty; Forgejo cuts it at 255 bytes. A server may ignore that
// the runner is ephemeral: read it back. After an error there may be a registration all the same, whose answer was lost.
func (c *Client) Register(ctx context.Context, name, description string) (Registration, error) {
	var r Registration
	body := struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Ephemeral   bool   `json:"ephemeral"`
	}{name, description, true}
	err := c.do(ctx, call{operation: OperationRegister, method: http.MethodPost, path: c.scope.prefix(), body: body, want: http.StatusCreated, decode: func(body []byte) error {
		return decodeRegistration(body, &r)
	}})
	if err != nil {
		return Registration{}, c.wrap("register runner "+name, c.explain(ctx, err))
	}
	return r, nil
}

// Deregister a runner. It is no error when the API says that there is none, or none of this scope.
func (c *Client) Deregister(ctx context.Context, id int64) error {
	err := c.do(ctx, call{operation: OperationDeregister, method: http.MethodDelete, path: c.runner(id), want: http.StatusNoContent})
	if err == nil || errors.Is(err, errAbsent) {
		return nil
	}
	return c.wrap(fmt.Sprintf("deregister runner %d", id), c.explain(ctx, err))
}

func (c *Client) runner(id int64) string {
	return c.scope.prefix() + "/" + strconv.FormatInt(id, 10)
}

// wrap says what was being done, where.
func (c *Client) wrap(doing string, err error) error {
	return fmt.Errorf("cannot %s of %s at %s: %w", doing, c.scope, strings.TrimSuffix(c.base, "/api/v1"), err)
}

// explain an error of a route of runners. What is not found, and what is not understood, may be the doing of an old version.
func (c *Client) explain(ctx context.Context, err error) error {
	if !errors.Is(err, errAbsent) && !errors.Is(err, errAnyRoute) && !errors.Is(err, ErrNotForgejo) {
		return err
	}
	v, unknown := c.Version(ctx)
	switch {
	case unknown == nil && !v.Supported():
		return failed(ErrUnsupported, "it is version %s, and runners take Forgejo %d or later: upgrade it", v.Text, Required)
	case errors.Is(err, errAbsent) && unknown != nil:
		// An absence that cannot be explained is none.
		return failed(ErrUnavailable, "it says that %s is not there, and not which version it is", c.scope)
	case errors.Is(err, errAbsent) && c.scope.mayBeAbsent():
		return failed(ErrScopeGone, "%s is not there, or the token's user may not see it", c.scope)
	default:
		return settle(err)
	}
}

// settle what nothing more is found out about.
func settle(err error) error {
	if errors.Is(err, errAbsent) || errors.Is(err, errAnyRoute) {
		return failed(ErrNotForgejo, "%s", err)
	}
	return err
}
