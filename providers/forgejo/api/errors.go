package api

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// What an error is, for [errors.Is]. An error is at most one of these.
var (
	// ErrGone says that the API itself answered that there is no such runner, in a scope that is there.
	ErrGone = errors.New("there is no such runner")
	// ErrScopeGone says that the organization or the repository is not there, or hidden from the token.
	ErrScopeGone = errors.New("the scope is not there")
	// ErrUnauthorized says that the token is none of this server.
	ErrUnauthorized = errors.New("the token is refused")
	// ErrForbidden says that the token may not do this. The message says what it needs.
	ErrForbidden = errors.New("the token may not do that")
	// ErrNotForgejo says that what answered is not the API of a Forgejo: a web page, a redirect, what cannot be decoded.
	ErrNotForgejo = errors.New("that is not the answer of a Forgejo")
	// ErrUnavailable says that there was no answer, or that it was one to try again: 5xx, 429, timeouts, broken connections.
	ErrUnavailable = errors.New("the server is unavailable")
	// ErrUnsupported says that the server is older than version 15.
	ErrUnsupported = errors.New("the server is too old")
	// ErrRefused says that the API did not take the request, as with a name that it does not allow.
	ErrRefused = errors.New("the request is refused")
)

// errAbsent is a 404 of the API, before it is known what is absent.
var errAbsent = errors.New("not found")

// errAnyRoute is a 404 or 405 that no handler of the API gave.
var errAnyRoute = errors.New("no such route")

// results for the observer, by what an error is. Anything else is [ResultCanceled].
var results = []struct {
	err    error
	result string
}{
	{errAbsent, ResultNotFound},
	{ErrUnauthorized, ResultUnauthorized},
	{ErrForbidden, ResultForbidden},
	{errAnyRoute, ResultNotForgejo},
	{ErrNotForgejo, ResultNotForgejo},
	{ErrUnavailable, ResultUnavailable},
	{ErrRefused, ResultRefused},
}

// Results that an observer is told. There are no others.
const (
	ResultOK           = "ok"
	ResultNotFound     = "not_found"
	ResultUnauthorized = "unauthorized"
	ResultForbidden    = "forbidden"
	ResultNotForgejo   = "not_forgejo"
	ResultUnavailable  = "unavailable"
	ResultRefused      = "refused"
	// ResultCanceled is when the caller gave up.
	ResultCanceled = "canceled"
)

func resultOf(err error) string {
	if err == nil {
		return ResultOK
	}
	for _, r := range results {
		if errors.Is(err, r.err) {
			return r.result
		}
	}
	return ResultCanceled
}

// A failure says why in a sentence, and what kind of failure it is to [errors.Is].
type failure struct {
	kind error
	why  string
}

func (f *failure) Error() string { return f.why }
func (f *failure) Unwrap() error { return f.kind }

func failed(kind error, format string, args ...any) error {
	return &failure{kind: kind, why: fmt.Sprintf(format, args...)}
}

// judge an answer that is not the one hoped for.
func (c *Client) judge(res *http.Response, body []byte, permission string) error {
	said, ours := message(res, body)
	said = c.redact(said)
	status := fmt.Sprintf("%d %s", res.StatusCode, http.StatusText(res.StatusCode))
	switch code := res.StatusCode; {
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return failed(ErrUnavailable, "it answers %s", status)
	case code >= 300 && code < 400:
		return failed(ErrNotForgejo, "it redirects, and redirects are not followed: set the address that Forgejo has now, and check whether the organization or repository was renamed")
	case code == http.StatusMethodNotAllowed, code == http.StatusNotFound && !ours:
		return failed(errAnyRoute, "%s comes from something that is not Forgejo's API: check the address, and what stands in front of it", status)
	case !ours:
		return failed(ErrNotForgejo, "%s comes from something that is not Forgejo's API: check the address, and what stands in front of it", status)
	case code == http.StatusUnauthorized:
		return failed(ErrUnauthorized, "the token is refused: make a new one with %s", permission)
	case code == http.StatusForbidden:
		return failed(ErrForbidden, "the token may not do that: it has to have %s (it says: %s)", permission, said)
	case code == http.StatusNotFound:
		return failed(errAbsent, "it says: %s", said)
	default:
		return failed(ErrRefused, "it answers %s: %s", status, said)
	}
}

// message of an error of the API, and whether it is one. They are JSON, and hold where the API is described.
func message(res *http.Response, body []byte) (string, bool) {
	var answer struct {
		Message *string `json:"message"`
		URL     *string `json:"url"`
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") || json.Unmarshal(body, &answer) != nil {
		return "", false
	}
	if answer.Message == nil || answer.URL == nil {
		return "", false
	}
	return shorten(*answer.Message), true
}

// broken connections, in words that are the same on every run.
func (c *Client) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil { // The caller's, who knows why.
		return ctx.Err()
	}
	var (
		timeout     net.Error
		network     *net.OpError
		certificate *tls.CertificateVerificationError
		wrapped     *url.Error
	)
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return failed(ErrUnavailable, "it does not answer within %s", c.timeout)
	case errors.As(err, &certificate):
		return failed(ErrUnavailable, "its certificate is not trusted: %s: give the CA that signed it", certificate.Err)
	case errors.As(err, &network):
		return failed(ErrUnavailable, "cannot %s: %s", network.Op, network.Err)
	case errors.As(err, &wrapped):
		return failed(ErrUnavailable, "%s", c.redact(wrapped.Err.Error()))
	default:
		return failed(ErrUnavailable, "%s", c.redact(err.Error()))
	}
}

// redact the token, should a server or a proxy say it.
func (c *Client) redact(s string) string { return strings.ReplaceAll(s, c.token, "<token>") }

// shorten what a server says to a line.
func shorten(s string) string {
	const most = 200
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
