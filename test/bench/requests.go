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
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/bench/figures"
)

// audited is how far the API server's audit log was read.
func audited(p *local.Plane) (int64, error) {
	s, err := os.Stat(p.AuditLog())
	if err != nil {
		return 0, fmt.Errorf("cannot count requests: %w", err)
	}
	return s.Size(), nil
}

// An account of the API server.
type account struct{ namespace, name string }

// requestsSince the audit log was of a size, other than watches, by who sent them. A log that was turned meanwhile counts from
// its beginning.
func requestsSince(p *local.Plane, size int64) (map[account]int, error) {
	f, err := os.Open(p.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("cannot count requests: %w", err)
	}
	defer f.Close() //nolint:errcheck // It is only read.
	if s, err := f.Stat(); err == nil && s.Size() >= size {
		if _, err := f.Seek(size, io.SeekStart); err != nil {
			return nil, fmt.Errorf("cannot count requests: %w", err)
		}
	}
	sent := map[account]int{}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return sent, nil // The end, or the middle of a line that is being written.
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
		namespace, name, _ := strings.Cut(strings.TrimPrefix(e.User.Username, "system:serviceaccount:"), ":")
		sent[account{namespace, name}]++
	}
}

// byEnvironment are requests for each of n environments.
func byEnvironment(sent map[account]int, n int) figures.Requests {
	var r figures.Requests
	for who, count := range sent {
		each := float64(count) / float64(n)
		switch {
		case who.namespace == local.CrossplaneNamespace:
			r.Crossplane += each
		case who == account{names.SystemNamespace, platform.Provider}:
			r.Provider += each
		case who.name == names.Deployer:
			r.Helm += each
		}
	}
	return r
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
