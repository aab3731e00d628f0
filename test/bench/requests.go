package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/test/bench/figures"
)

// audited is how far the API server's audit log was read.
func (b *bench) audited() (int64, error) {
	s, err := os.Stat(b.Plane.AuditLog())
	if err != nil {
		return 0, fmt.Errorf("cannot count requests: %w", err)
	}
	return s.Size(), nil
}

// requestsSince the audit log was of a size, other than watches, by who sent them, for each of n environments. A log that was
// turned meanwhile counts from its beginning.
func (b *bench) requestsSince(size int64, n int) (figures.Requests, error) {
	f, err := os.Open(b.Plane.AuditLog())
	if err != nil {
		return figures.Requests{}, fmt.Errorf("cannot count requests: %w", err)
	}
	defer f.Close() //nolint:errcheck // It is only read.
	if s, err := f.Stat(); err == nil && s.Size() >= size {
		if _, err := f.Seek(size, io.SeekStart); err != nil {
			return figures.Requests{}, fmt.Errorf("cannot count requests: %w", err)
		}
	}
	r, one := figures.Requests{}, 1/float64(n)
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return r, nil // The end, or the middle of a line that is being written.
		}
		e := struct {
			Verb string `json:"verb"`
			User struct {
				Username string `json:"username"`
			} `json:"user"`
		}{}
		if json.Unmarshal(line, &e) != nil || e.Verb == "watch" {
			continue
		}
		namespace, account, _ := strings.Cut(strings.TrimPrefix(e.User.Username, "system:serviceaccount:"), ":")
		switch {
		case namespace == local.CrossplaneNamespace:
			r.Crossplane += one
		case namespace == names.SystemNamespace:
			r.Provider += one
		case account == names.Deployer:
			r.Helm += one
		}
	}
}

// counting are the requests that Helm sends outside.
type counting struct{ sent *atomic.Int64 }

func (c counting) of(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return counter{rt, c.sent} })
	return cfg
}

type counter struct {
	http.RoundTripper
	sent *atomic.Int64
}

// RoundTrip counts the request and sends it.
func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.sent.Add(1)
	return c.RoundTripper.RoundTrip(r)
}
