package release

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// A witness sees the requests of one Helm operation and remembers whether one of them failed for a reason that passes. Helm
// puts the errors of its requests together as text, so that what they were cannot be told from what it returns.
type witness struct {
	mu   sync.Mutex
	lost error
}

// of returns the config with the witness looking on.
func (w *witness) of(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return witnessed{next: next, witness: w} })
	return cfg
}

// judge an operation's error: it passes if a request was lost.
func (w *witness) judge(err error) error {
	if w == nil || err == nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost == nil {
		return err
	}
	return &lostError{err: err, lost: w.lost}
}

func (w *witness) saw(lost error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = lost
}

// A lostError is an operation's error after a request or its answer was lost, or the API server could not answer.
type lostError struct{ err, lost error }

// Error is the operation's.
func (e *lostError) Error() string { return e.err.Error() }

// Unwrap gives both.
func (e *lostError) Unwrap() []error { return []error{e.err, e.lost} }

// witnessed lets a witness see what comes of requests.
type witnessed struct {
	next    http.RoundTripper
	witness *witness
}

// RoundTrip is next's.
func (r witnessed) RoundTrip(req *http.Request) (*http.Response, error) {
	rsp, err := r.next.RoundTrip(req)
	switch {
	case err != nil:
		r.witness.saw(err)
	case rsp.StatusCode == http.StatusTooManyRequests, rsp.StatusCode >= http.StatusInternalServerError:
		r.witness.saw(fmt.Errorf("the API server says %s", rsp.Status))
	default:
		rsp.Body = body{ReadCloser: rsp.Body, witness: r.witness}
	}
	return rsp, err
}

// body is an answer that may break off.
type body struct {
	io.ReadCloser
	witness *witness
}

// Read is the answer's.
func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.witness.saw(err)
	}
	return n, err
}
