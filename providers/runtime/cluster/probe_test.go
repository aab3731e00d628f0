package cluster

import (
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	other := newAuthority(t)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	cases := map[string]struct {
		reason  string
		cert    func(*x509.Certificate)
		answer  http.HandlerFunc
		edit    func(*testing.T, *apiServer, *Endpoint)
		want    xpv2.ConditionReason // empty: it is reached
		message string
		user    string
	}{
		"Token": {
			reason: "A token that the server knows is proved.", user: "system:serviceaccount:kube-system:steading",
		},
		"ClientCertificate": {
			reason: "So is a client certificate.", user: "edge-admin",
			edit: func(t *testing.T, s *apiServer, e *Endpoint) {
				cert, key := s.ca.issue(t, nil)
				e.Credential = Credential{cert: cert, key: key}
			},
		},
		"WrongToken": {
			reason: "A token that the server does not know is refused.", want: steading.ReasonCredentialRefused, message: "refuses the token (401 Unauthorized)",
			edit: func(_ *testing.T, _ *apiServer, e *Endpoint) { e.Credential.token = "planted-secret" },
		},
		"PortThatIsNone": {
			reason: "An address that cannot be dialed is the claim's own mistake.", want: steading.ReasonWrongAnswer, message: "set spec.server to https://host:port",
			edit: func(_ *testing.T, _ *apiServer, e *Endpoint) { e.Server = "https://127.0.0.1:99999" },
		},
		"ForeignClientCertificate": {
			reason: "A client certificate of another CA is refused in the handshake.", want: steading.ReasonCredentialRefused, message: "refuses the client certificate during the TLS handshake",
			edit: func(t *testing.T, _ *apiServer, e *Endpoint) {
				cert, key := other.issue(t, nil)
				e.Credential = Credential{cert: cert, key: key}
			},
		},
		"Anonymous": {
			reason: "A server that takes the credential for nobody's has not accepted it.", want: steading.ReasonCredentialRefused, message: "system:anonymous",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				reply(w, 201, map[string]any{"kind": "SelfSubjectReview", "status": map[string]any{"userInfo": map[string]any{"username": "system:anonymous"}}})
			},
		},
		"Forbidden": {
			reason: "A credential that may not even ask who it is does not do.", want: steading.ReasonCredentialRefused, message: "403 Forbidden): no",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				reply(w, 403, map[string]any{"kind": "Status", "message": "no"})
			},
		},
		"WrongCA": {
			reason: "A server of another CA is not spoken to.", want: steading.ReasonCAMismatch, message: "was not signed by spec.caBundle",
			edit: func(_ *testing.T, _ *apiServer, e *Endpoint) { e.CA = other.pem },
		},
		"WrongHost": {
			reason: "A certificate for another host is not taken.", want: steading.ReasonCAMismatch, message: "not for the host in spec.server",
			cert: func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"elsewhere.example.com"} },
		},
		"Expired": {
			reason: "An expired certificate is not taken.", want: steading.ReasonCAMismatch, message: "has expired or is not valid yet",
			cert: func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) },
		},
		"HTML": {
			reason: "A web page is no API server.", want: steading.ReasonWrongAnswer, message: "it answers with a web page (200)",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				_, _ = w.Write([]byte("<html>planted-secret</html>"))
			},
		},
		"Redirect": {
			reason: "A redirect is not followed.", want: steading.ReasonWrongAnswer, message: "a redirect (307), which is not followed",
			answer: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, plain.URL, http.StatusTemporaryRedirect)
			},
		},
		"OtherJSON": {
			reason: "Neither is any JSON API.", want: steading.ReasonWrongAnswer, message: "not as the API server of Kubernetes 1.28",
			answer: func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, map[string]string{"hello": "world"}) },
		},
		"TooOld": {
			reason: "A server without SelfSubjectReview is too old.", want: steading.ReasonWrongAnswer, message: "Kubernetes 1.28",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				reply(w, 404, map[string]any{"kind": "Status", "code": 404})
			},
		},
		"NotTLS": {
			reason: "Plain HTTP is not spoken.", want: steading.ReasonWrongAnswer, message: "does not speak TLS",
			edit: func(_ *testing.T, _ *apiServer, e *Endpoint) {
				e.Server = strings.Replace(plain.URL, "http:", "https:", 1)
			},
		},
		"Overloaded": {
			reason: "A server that cannot answer now may later.", want: steading.ReasonTargetUnreachable, message: "not able to answer now (503 Service Unavailable)",
			answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		},
		"Nobody": {
			reason: "Nobody listens.", want: steading.ReasonTargetUnreachable, message: "connection refused",
			edit: func(t *testing.T, _ *apiServer, e *Endpoint) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				e.Server = "https://" + l.Addr().String()
				_ = l.Close()
			},
		},
		"Loopback": {
			reason: "The loopback address is refused unless it is allowed.", want: steading.ReasonAddressRefused, message: "127.0.0.1 is a loopback address",
			edit: func(_ *testing.T, _ *apiServer, e *Endpoint) { e.Policy = address.Policy{} },
		},
		"NameOfLoopback": {
			reason: "What a name stands for counts, when it is dialled.", want: steading.ReasonAddressRefused, message: "is a loopback address",
			edit: func(_ *testing.T, _ *apiServer, e *Endpoint) {
				e.Policy, e.Server = address.Policy{}, strings.Replace(e.Server, "127.0.0.1", "localhost", 1)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t, tc.cert)
			s.answerWith(tc.answer)
			e := s.endpoint()
			if tc.edit != nil {
				tc.edit(t, s, &e)
			}
			a, err := probe(t, e)
			if tc.want == "" {
				if err != nil || a.user != tc.user || a.version != "v1.35.4" {
					t.Errorf("%s: answer %+v, error %v", tc.reason, a, err)
				}
				return
			}
			p := new(UnreachedError)
			if !errors.As(err, &p) || p.Reason != tc.want || !strings.Contains(p.Message, tc.message) {
				t.Fatalf("%s: want %s with %q, have %#v", tc.reason, tc.want, tc.message, err)
			}
			notIn(t, p.Message, goodToken, "planted-secret", string(e.Credential.key))
			if _, again := probe(t, e); again == nil || again.Error() != p.Message {
				t.Errorf("the message changes from one try to the next: %q, then %v", p.Message, again)
			}
		})
	}
}

func TestProbeOfAServerThatHangs(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, nil)
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	s.answerWith(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	})
	began := time.Now()
	_, err := probe(t, s.endpoint())
	if p := problemOf(err); err == nil || p.Reason != steading.ReasonTargetUnreachable || !strings.Contains(p.Message, "does not answer within 10s") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(began); took > requestTimeout+2*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestNoProxyOfTheEnvironment(t *testing.T) {
	asked := false
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	s := newAPIServer(t, nil)
	if _, err := probe(t, s.endpoint()); err != nil {
		t.Errorf("error %v", err)
	}
	cfg := s.endpoint().Config()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := cfg.Proxy(req); u != nil || err != nil || asked {
		t.Errorf("proxy %v, error %v, asked %t", u, err, asked)
	}
}
