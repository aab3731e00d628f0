package api_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

func TestConfigIsChecked(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*api.Config)
		says   string
	}{
		"Good":       {"Nothing is wrong.", func(*api.Config) {}, ""},
		"Path":       {"Forgejo may be below a path.", func(c *api.Config) { c.URL = "https://example.com/git/" }, ""},
		"Scheme":     {"Only the web is spoken.", func(c *api.Config) { c.URL = "ftp://example.com" }, "scheme"},
		"NoHost":     {"An address has a host.", func(c *api.Config) { c.URL = "https:///x" }, "address"},
		"Password":   {"Credentials are not in addresses.", func(c *api.Config) { c.URL = "https://a:secret@example.com" }, "address"},
		"Query":      {"An address has no query.", func(c *api.Config) { c.URL = "https://example.com?a=b" }, "address"},
		"Nonsense":   {"An address is one.", func(c *api.Config) { c.URL = "://" }, "URL"},
		"NoToken":    {"A token is needed.", func(c *api.Config) { c.Token = " \n" }, "token"},
		"BadToken":   {"A token is one word.", func(c *api.Config) { c.Token = "secret secret" }, "token"},
		"NewLine":    {"A file's last line break is not the token's.", func(c *api.Config) { c.Token = "secret\n" }, ""},
		"NoScope":    {"A scope is needed.", func(c *api.Config) { c.Scope = api.Scope{} }, "scope"},
		"NoName":     {"An organization has a name.", func(c *api.Config) { c.Scope = api.Organization("") }, "organization"},
		"Dots":       {"A name is not a way up.", func(c *api.Config) { c.Scope = api.Repository("..", "web") }, "owner"},
		"NoCA":       {"A bundle has certificates.", func(c *api.Config) { c.CA = []byte("none") }, "CA"},
		"Key":        {"A bundle has nothing else.", func(c *api.Config) { c.CA = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY"}) }, "CA"},
		"BrokenCert": {"Certificates can be read.", func(c *api.Config) { c.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE"}) }, "CA"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := api.Config{URL: "https://example.com", Token: "secret", Scope: api.Instance()}
			tc.change(&cfg)
			_, err := api.New(cfg)
			if (err != nil) != (tc.says != "") || err != nil && (!strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%s have %v", tc.reason, err)
			}
		})
	}
}

// answer everything with the same, and count.
func answer(t *testing.T, start func(http.Handler) *httptest.Server, h http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	srv := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		h(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv, &n
}

func TestCertificateIsVerified(t *testing.T) {
	srv, n := answer(t, httptest.NewTLSServer, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("null")) })
	cfg := api.Config{URL: srv.URL, Token: "secret", Scope: api.Instance()}
	if _, err := newClient(t, cfg).Jobs(t.Context(), nil); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "give the CA") {
		t.Errorf("a certificate that nobody knows: %v", err)
	}
	if n.Load() != 0 {
		t.Error("the token was sent to who knows whom")
	}
	cfg.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if _, err := newClient(t, cfg).Jobs(t.Context(), nil); err != nil {
		t.Errorf("a certificate of the CA: %v", err)
	}
}

// TestAddressesAreJudgedByTheDialer and by nothing before it, as a proxy would be.
func TestAddressesAreJudgedByTheDialer(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	w := newWorld(t)
	token, err := w.AddToken("root", "all")
	must(t, err)
	var asked []string
	refuse := errors.New("private addresses are not allowed")
	c := newClient(t, api.Config{URL: "http://git.example.com", Token: token, Scope: api.Instance(), Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		asked = append(asked, address)
		return nil, refuse
	}})
	if _, err := c.Jobs(t.Context(), nil); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), refuse.Error()) {
		t.Errorf("have %v", err)
	}
	if diff := cmp.Diff([]string{"git.example.com:80"}, asked); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere, n := answer(t, httptest.NewServer, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("null")) })
	w := newWorld(t)
	c := w.admin(t)
	must(t, w.SetFault(forgejo.Fault{Kind: forgejo.FaultRedirect, Location: elsewhere.URL}))
	if _, err := c.Jobs(t.Context(), nil); !errors.Is(err, api.ErrNotForgejo) || n.Load() != 0 {
		t.Errorf("asked elsewhere %d times: %v", n.Load(), err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	page := []byte(`[` + strings.Repeat(" ", 1<<20))
	cases := map[string]struct {
		reason string
		mib    int
		call   func(*api.Client) error
		want   error
	}{
		"Runners":     {"Pages are small.", 5, func(c *api.Client) error { _, err := c.Runners(t.Context()); return err }, api.ErrUnavailable},
		"ManyJobs":    {"The list of jobs has no pages.", 20, func(c *api.Client) error { _, err := c.Jobs(t.Context(), nil); return err }, nil},
		"TooManyJobs": {"It is bounded all the same.", 33, func(c *api.Client) error { _, err := c.Jobs(t.Context(), nil); return err }, api.ErrUnavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv, _ := answer(t, httptest.NewServer, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(page)
				for range tc.mib - 1 {
					_, _ = w.Write(page[1:])
				}
				_, _ = w.Write([]byte("]"))
			})
			if err := tc.call(newClient(t, api.Config{URL: srv.URL, Token: "secret", Scope: api.Instance()})); !errors.Is(err, tc.want) {
				t.Errorf("%s have %v", tc.reason, err)
			}
		})
	}
}

// TestWhatIsNotTheAPI is refused, though it is JSON.
func TestWhatIsNotTheAPI(t *testing.T) {
	runners := func(c *api.Client) error { _, err := c.Runners(t.Context()); return err }
	runner := func(c *api.Client) error { _, err := c.Runner(t.Context(), 7); return err }
	register := func(c *api.Client) error { _, err := c.Register(t.Context(), "one", ""); return err }
	jobs := func(c *api.Client) error { _, err := c.Jobs(t.Context(), nil); return err }
	cases := map[string]struct {
		reason string
		call   func(*api.Client) error
		status int
		body   string
	}{
		"Gitea":        {"Gitea lists in another form.", runners, 200, `{"runners":[],"total_count":0}`},
		"NoBody":       {"Nothing is no list.", runners, 200, ``},
		"More":         {"A list ends where it ends.", jobs, 200, `[] []`},
		"Blank":        {"A runner has an id.", runners, 200, `[{}]`},
		"BlankJob":     {"A job has an id.", jobs, 200, `[{"name":"x"}]`},
		"NullRunner":   {"No runner is no runner.", runner, 200, `null`},
		"OtherRunner":  {"Another runner is not this one.", runner, 200, `{"id":8,"uuid":"u","status":"idle"}`},
		"ForeignJSON":  {"Others say 404 in JSON too.", runner, 404, `{"error":"no such path"}`},
		"HalfJSON":     {"Others have messages too.", runner, 404, `{"message":"no Route matched with those values"}`},
		"BlankAnswer":  {"A registration has a token.", register, 201, `{"id":1,"uuid":"u"}`},
		"StrangeWords": {"200 is not 201.", register, 200, `{"id":1,"uuid":"u","token":"t"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv, _ := answer(t, httptest.NewServer, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			})
			if err := tc.call(newClient(t, api.Config{URL: srv.URL, Token: "secret", Scope: api.Organization("acme")})); !errors.Is(err, api.ErrNotForgejo) {
				t.Errorf("%s have %v", tc.reason, err)
			}
		})
	}
}

// TestTokensAreNotTold by errors, whatever a server says of them, nor by a registration that is printed.
func TestTokensAreNotTold(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef01234567"
	for _, status := range []int{200, 201, 400, 401, 403, 404, 422, 500} {
		for _, kind := range []string{"application/json", "text/html"} {
			srv, _ := answer(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", kind)
				w.WriteHeader(status)
				_, _ = fmt.Fprintf(w, `{"message":"%[1]s is bad","url":"%[1]s","version":"%[1]s","token":"%[1]s"}`, r.Header.Get("Authorization"))
			})
			c := newClient(t, api.Config{URL: srv.URL, Token: token, Scope: api.Organization("acme")})
			_, err1 := c.Runner(t.Context(), 1)
			_, err2 := c.Register(t.Context(), "one", "")
			_, err3 := c.Version(t.Context())
			for _, err := range []error{err1, err2, err3} {
				if err == nil || strings.Contains(err.Error(), token) {
					t.Errorf("%d %s: %v", status, kind, err)
				}
			}
		}
	}
	r := api.Registration{ID: 1, UUID: "u", Token: token}
	for _, printed := range []string{fmt.Sprint(r), fmt.Sprintf("%+v", r), fmt.Sprintf("%#v", r), fmt.Sprintf("%v", &r), r.LogValue().String()} {
		if strings.Contains(printed, token) {
			t.Errorf("printed: %s", printed)
		}
	}
}

func TestTimeoutIsUnavailability(t *testing.T) {
	w := newWorld(t)
	token, err := w.AddToken("root", "all")
	must(t, err)
	c := newClient(t, api.Config{URL: w.url, Token: token, Scope: api.Instance(), Timeout: 50 * time.Millisecond})
	must(t, w.SetFault(forgejo.Fault{Kind: forgejo.FaultHang}))
	if _, err := c.Jobs(t.Context(), nil); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "within 50ms") {
		t.Errorf("have %v", err)
	}
}

func TestRefusedConnectionIsUnavailability(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	c := newClient(t, api.Config{URL: srv.URL, Token: "secret", Scope: api.Instance()})
	_, err := c.Jobs(t.Context(), nil)
	if want := "cannot list the jobs of the instance at " + srv.URL + ": cannot dial: connect: connection refused"; !errors.Is(err, api.ErrUnavailable) || err.Error() != want {
		t.Errorf("have %v", err)
	}
}

func TestObserverIsTold(t *testing.T) {
	w := newWorld(t)
	token, err := w.AddToken("root", "all")
	must(t, err)
	var have []string
	c := newClient(t, api.Config{URL: w.url, Token: token, Scope: api.Instance(), Observe: func(operation, result string, took time.Duration) {
		have = append(have, operation+" "+result)
		if took <= 0 {
			t.Error("it took no time")
		}
	}})
	r, err := c.Register(t.Context(), "one", "")
	must(t, err)
	must(t, c.Deregister(t.Context(), r.ID))
	_, _ = c.Runner(t.Context(), r.ID)
	for _, kind := range []forgejo.FaultKind{forgejo.FaultUnavailable, forgejo.FaultUnauthorized, forgejo.FaultForbidden, forgejo.FaultHTML} {
		must(t, w.SetFault(forgejo.Fault{Route: forgejo.RouteJobs, Kind: kind, Times: 1}))
		_, _ = c.Jobs(t.Context(), nil)
	}
	_, _ = c.Register(t.Context(), "", "")
	want := []string{
		"register ok", "deregister ok", "runner not_found", "runners ok",
		"jobs unavailable", "jobs unauthorized", "jobs forbidden", "jobs not_forgejo", "version ok", "register refused",
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
}

func TestScopesAreComparable(t *testing.T) {
	scopes := []api.Scope{api.Instance(), api.User(), api.Organization("a"), api.Organization("b"), api.Repository("a", "b"), api.Repository("b", "a")}
	for i, s := range scopes {
		if slices.Index(scopes, s) != i {
			t.Errorf("%s is another's equal", s)
		}
	}
}
