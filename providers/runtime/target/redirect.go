package target

import (
	"fmt"
	"net/http"
)

// RefuseRedirects turns a redirect into a [RedirectError], so that no request, and no credential with it, goes where nobody
// said. API servers answer with redirects to nothing that is asked here.
func RefuseRedirects(rt http.RoundTripper) http.RoundTripper { return straight{rt} }

// A RedirectError says that a server answered with a redirect.
type RedirectError struct {
	// Code is the HTTP status.
	Code int
}

func (e *RedirectError) Error() string {
	return fmt.Sprintf("it answers with a redirect (%d), which is not followed", e.Code)
}

type straight struct{ http.RoundTripper }

func (s straight) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := s.RoundTripper.RoundTrip(req)
	if err == nil && res.StatusCode >= 300 && res.StatusCode < 400 && res.Header.Get("Location") != "" {
		res.Body.Close() //nolint:errcheck,gosec // Nothing of it is wanted.
		return nil, &RedirectError{Code: res.StatusCode}
	}
	return res, err
}

// CloseIdleConnections of what is wrapped.
func (s straight) CloseIdleConnections() { closeIdle(s.RoundTripper) }
