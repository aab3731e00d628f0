package proxy

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const account = "system:serviceaccount:steading-system:provider-runtime"

// server stands for an API server: it notes what reaches it, and its watches send a line when they are told to.
type server struct {
	mu      sync.Mutex
	reached []string
	news    chan string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Query().Has("watch") {
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case line := <-s.news:
				_, _ = fmt.Fprintln(w, line)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached = append(s.reached, r.Method+" "+r.URL.RequestURI()+" "+string(body))
	w.Header().Set("Authorization-Was", r.Header.Get("Authorization"))
}

// start a server, a proxy before it, and a client that knows the proxy only.
func start(t *testing.T) (*server, *Proxy, *http.Client) {
	t.Helper()
	s := &server{news: make(chan string)}
	h := httptest.NewUnstartedServer(s)
	h.EnableHTTP2 = true
	h.StartTLS()
	t.Cleanup(h.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	p, err := Start(h.URL, ca)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.CA())
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}}
	t.Cleanup(c.CloseIdleConnections)
	return s, p, c
}

func token() string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"none"}`)) + "." + part([]byte(`{"sub":"`+account+`"}`)) + ".signature"
}

// do a request, and return the token that it reached the server with.
func do(t *testing.T, c *http.Client, p *Proxy, method, path, body string) (string, error) {
	t.Helper()
	req, err := http.NewRequest(method, p.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token())
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	return res.Header.Get("Authorization-Was"), res.Body.Close()
}

func TestPassesEverythingOn(t *testing.T) {
	s, p, c := start(t)
	p.Record()
	for _, r := range [][3]string{
		{"GET", "/api/v1/namespaces/a/secrets?limit=5", ""},
		{"POST", "/api/v1/namespaces", `{"metadata":{"name":"acme-dev"}}`},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", "x"},
		{"POST", "/api/v1/namespaces/a/events", "x"},
		{"POST", "/api/v1/namespaces/a/serviceaccounts/b/token", "x"},
		{"PATCH", "/api/v1/namespaces/a?dryRun=All", "x"},
		{"DELETE", "/api/v1/namespaces/acme-web", ""},
	} {
		was, err := do(t, c, p, r[0], r[1], r[2])
		if err != nil {
			t.Fatal(err)
		}
		if was != "Bearer "+token() {
			t.Errorf("%s %s lost its token", r[0], r[1])
		}
	}
	if len(s.reached) != 7 || s.reached[0] != "GET /api/v1/namespaces/a/secrets?limit=5 " || s.reached[1] != `POST /api/v1/namespaces {"metadata":{"name":"acme-dev"}}` {
		t.Errorf("reached the server: %q", s.reached)
	}
	seen := p.Record()
	var have []string
	for _, q := range seen {
		have = append(have, q.String())
	}
	want := []string{"POST /api/v1/namespaces by " + account, "DELETE /api/v1/namespaces/acme-web by " + account}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Fatalf("what changes something: -want, +have:\n%s", diff)
	}
	if !seen[0].About("acme-dev") || !seen[1].About("acme-web") || seen[0].About("acme-web") {
		t.Error("what a request is about is not known by path and body")
	}
}

func TestWatchesStream(t *testing.T) {
	s, p, c := start(t)
	res, err := c.Get(p.URL() + "/api/v1/pods?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(res.Body)
	for _, line := range []string{"one", "two"} {
		s.news <- line
		if !lines.Scan() || lines.Text() != line {
			t.Fatalf("have %q, want %q: %v", lines.Text(), line, lines.Err())
		}
	}
	_ = res.Body.Close()
}

func TestFaultHappensOnce(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  Fault
		// fails is which of four requests fail, and reached how many the server gets.
		fails   []bool
		reached int
		// before is how many had reached the server when it happened.
		before int
	}{
		"Before":    {"The server never hears of it.", Fault{At: 2, Before: true, Cut: true}, []bool{false, true, false, false}, 3, 1},
		"After":     {"The server did it, and nobody was told.", Fault{At: 2, Cut: true}, []bool{false, true, false, false}, 4, 2},
		"Watched":   {"Something happens meanwhile, and the request goes on.", Fault{At: 3, Before: true}, make([]bool, 4), 4, 2},
		"Answered":  {"Something happens before the answer is heard.", Fault{At: 3}, make([]bool, 4), 4, 3},
		"Selective": {"Only what matches counts.", Fault{At: 1, Before: true, Cut: true, Match: func(q Request) bool { return q.About("3") && q.User == account }}, []bool{false, false, false, true}, 3, 3},
		"Never":     {"What does not come does not happen.", Fault{At: 5, Cut: true}, make([]bool, 4), 4, -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, p, c := start(t)
			count := func() int {
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.reached)
			}
			before, f := -1, tc.fault
			f.Do = func(Request) { before = count() }
			p.Arm(&f)
			for i, fails := range tc.fails {
				if _, err := do(t, c, p, http.MethodPatch, fmt.Sprintf("/objects/%d", i), "x"); (err != nil) != fails {
					t.Errorf("%s request %d: %v", tc.reason, i, err)
				}
			}
			if count() != tc.reached || before != tc.before {
				t.Errorf("%s %d requests reached the server, want %d; %d before it happened, want %d", tc.reason, count(), tc.reached, before, tc.before)
			}
		})
	}
}
