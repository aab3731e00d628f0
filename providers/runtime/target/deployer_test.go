package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/steading-dev/steading/providers/internal/address"
)

// roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int) (*http.Response, error) {
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// issuing returns tokens that issue t-1, t-2, ... that live this long, and how many were issued.
func issuing(life time.Duration, err error) (*tokens, *int) {
	issued := new(int)
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, sub string, obj, with client.Object, _ ...client.SubResourceCreateOption) error {
			if err != nil {
				return err
			}
			tr, ok := with.(*authenticationv1.TokenRequest)
			sa, also := obj.(*corev1.ServiceAccount)
			if !ok || !also || sub != "token" || sa.Name != "steading-deployer" {
				return fmt.Errorf("unexpected %s of %T", sub, obj)
			}
			*issued++
			tr.Status = authenticationv1.TokenRequestStatus{Token: fmt.Sprintf("t-%d", *issued), ExpirationTimestamp: metav1.NewTime(time.Now().Add(life))}
			return nil
		},
	})
	return &tokens{client: c, byNamespace: map[string]*token{}}, issued
}

func TestDeployerTokens(t *testing.T) {
	ctx := context.Background()
	get := func(tk *tokens, namespace string) string {
		t.Helper()
		v, err := tk.get(ctx, namespace)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	tk, issued := issuing(time.Hour, nil)
	if a, b := get(tk, "acme-dev"), get(tk, "acme-dev"); a != b || *issued != 1 {
		t.Errorf("got %s, then %s: a token is kept while it lives", a, b)
	}
	if get(tk, "acme-test") == get(tk, "acme-dev") {
		t.Error("two namespaces share a token")
	}
	tk.forget("acme-dev", "t-9")
	if get(tk, "acme-dev") != "t-1" {
		t.Error("a token was forgotten because another was refused")
	}
	tk.forget("acme-dev", "t-1")
	if get(tk, "acme-dev") != "t-3" {
		t.Error("a token that was refused is used again")
	}

	short, issued := issuing(0, nil)
	get(short, "acme-dev")
	if get(short, "acme-dev"); *issued != 2 {
		t.Error("a token that expired is used again")
	}

	gone, _ := issuing(0, kerrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, "steading-deployer"))
	if _, err := gone.get(ctx, "acme-dev"); !kerrors.IsNotFound(err) {
		t.Errorf("got %v, want a not-found", err)
	}
	if len(gone.byNamespace) > 0 {
		t.Error("namespaces that are gone are kept for ever")
	}
}

// TestDeployerIsNobodyElse has the provider's own credential in the target's config.
func TestDeployerIsNobodyElse(t *testing.T) {
	tk, _ := issuing(time.Hour, nil)
	tg := &Target{Name: "platform", tokens: tokens{client: tk.client, byNamespace: map[string]*token{}}}
	var err error
	of := &rest.Config{Host: "https://127.0.0.1:1", BearerToken: "provider", Username: "u", Password: "p", Impersonate: rest.ImpersonationConfig{UserName: "root"}}
	if tg.anonymous, err = anonymously(of, Bounded); err != nil {
		t.Fatal(err)
	}
	cfg, err := tg.Deployer(context.Background(), "acme-dev")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.BearerToken != "" || cfg.BearerTokenFile != "" || cfg.Username != "" || cfg.Password != "" || cfg.Impersonate.UserName != "" {
		t.Errorf("the provider's credential goes along: %v", cfg)
	}
	status, seen := http.StatusUnauthorized, []string{}
	rt := cfg.WrapTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		seen = append(seen, r.Header.Get("Authorization"))
		return answer(status)
	}))
	for range 2 {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://127.0.0.1:1/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	if fmt.Sprint(seen) != "[Bearer t-1 Bearer t-2]" {
		t.Errorf("got %v, want another token after the first was refused", seen)
	}
}

func TestBreaker(t *testing.T) {
	b := newBreaker("edge", Context)
	var err error
	status, asked := http.StatusOK, 0
	rt := b.wrap(roundTrip(func(*http.Request) (*http.Response, error) {
		asked++
		if err != nil {
			return nil, err
		}
		return answer(status)
	}))
	ask := asking(t, rt)
	status = http.StatusInternalServerError
	for range 2 * breakerFailures {
		_ = ask()
	}
	if asked != 2*breakerFailures {
		t.Fatal("a server that answers, if only with 500, is not dead")
	}
	err = context.Canceled
	for range 2 * breakerFailures {
		_ = ask()
	}
	if asked != 4*breakerFailures {
		t.Fatal("our hanging up says nothing about the server")
	}
	err, asked = errors.New("connection refused"), 0
	for range 2 * breakerFailures {
		_ = ask()
	}
	if asked != breakerFailures {
		t.Errorf("a dead server was asked %d times, want %d", asked, breakerFailures)
	}
	if got := ask(); !errors.As(got, new(*UnreachableError)) {
		t.Errorf("got %v, want it said that the context is unreachable", got)
	}
}

// asking makes a request by rt each time, and returns why it has no answer.
func asking(t *testing.T, rt http.RoundTripper) func() error {
	t.Helper()
	return func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:1", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := rt.RoundTrip(req)
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	}
}

// TestDeployersShareConnections: a client is made for each look at a release, and by Helm for each object of a chart. On a
// registered context, whose addresses are checked as they are dialed, client-go has each dial by itself.
func TestDeployersShareConnections(t *testing.T) {
	dialed := &atomic.Int32{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); !strings.HasPrefix(got, "Bearer t-") {
			t.Errorf("who asks is %q", got)
		}
		empty(w, r)
	}))
	s.EnableHTTP2 = true
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			dialed.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	tg := deploys(t, s, (&net.Dialer{}).DialContext)
	for range 10 {
		cfg, err := tg.Deployer(t.Context(), "acme-dev")
		if err != nil {
			t.Fatal(err)
		}
		m, err := metadata.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace("acme-dev").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := dialed.Load(); n != 1 {
		t.Errorf("ten clients have %d connections", n)
	}
}

// deploys makes a target of a tenant's server that is a test's, and has a token to deploy with.
func deploys(t *testing.T, s *httptest.Server, dial func(context.Context, string, string) (net.Conn, error)) *Target {
	t.Helper()
	cfg := trusting(s)
	cfg.Dial, cfg.Proxy = dial, http.ProxyURL(nil)
	tg, err := newTarget("acme-edge", Context, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	tk, _ := issuing(time.Hour, nil)
	tg.tokens.client = tk.client
	return tg
}

// TestDeployersAreKeptFromElsewhere: whatever else they share, no redirect is followed, no address is dialed that is refused, and no
// more is read than is to be held.
func TestDeployersAreKeptFromElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		policy address.Policy
		as     any
	}{
		"Redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1", http.StatusFound)
		},
			address.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, new(*RedirectError)},
		"Address": {empty, address.Policy{}, new(*address.RefusedError)},
		"Bomb": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			hostile["ABomb"].answer(w, r)
		}, address.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, new(*ExcessError)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
			s := httptest.NewTLSServer(tc.answer)
			t.Cleanup(s.Close)
			tg := deploys(t, s, tc.policy.Dialer(time.Second).DialContext)
			cfg, err := tg.Deployer(t.Context(), "acme-dev")
			if err != nil {
				t.Fatal(err)
			}
			m, err := metadata.NewForConfig(cfg)
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace("acme-dev").List(t.Context(), metav1.ListOptions{})
			if !errors.As(err, tc.as) {
				t.Errorf("got %v", err)
			}
		})
	}
}
