package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"

	"github.com/steading-dev/steading/providers/internal/address"
	"github.com/steading-dev/steading/test/authority"
)

// loopback is allowed in tests, whose servers are there.
var loopback = address.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

const goodToken = "good-token"

// An issuer signs certificates for tests.
type issuer struct {
	*authority.Authority
	pem []byte
}

func newAuthority(t *testing.T) *issuer {
	t.Helper()
	a, err := authority.New("authority")
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{a, a.PEM()}
}

// issue a certificate, PEM, with its key.
func (a *issuer) issue(t *testing.T, edit func(*x509.Certificate)) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "edge-admin"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if edit != nil {
		edit(template)
	}
	der, err := a.Sign(template, &k.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: b})
}

// An apiServer answers over TLS the two questions that a probe asks, and watches, until it is told otherwise.
type apiServer struct {
	*httptest.Server
	ca *issuer

	mu       sync.Mutex
	override http.HandlerFunc
	version  string
	watchers map[chan struct{}]bool
	asked    []string // paths
	objects  objects
}

func newAPIServer(t *testing.T, edit func(*x509.Certificate)) *apiServer {
	t.Helper()
	s := &apiServer{ca: newAuthority(t), version: "v1.35.4", watchers: map[chan struct{}]bool{}}
	s.objects.byPath = map[string]*unstructured.Unstructured{}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	cert, key := s.ca.issue(t, edit)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(s.ca.Certificate())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() { s.cut(); s.CloseClientConnections(); s.Close() })
	return s
}

// endpoint of the server with the right CA and token.
func (s *apiServer) endpoint() Endpoint {
	return Endpoint{Server: s.URL, CA: s.ca.pem, Credential: Credential{token: goodToken}, Policy: loopback}
}

// answer with something else, nil for the usual.
func (s *apiServer) answerWith(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.override = h
}

// cut all watches.
func (s *apiServer) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		close(w)
		delete(s.watchers, w)
	}
}

func (s *apiServer) watched() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watchers)
}

func (s *apiServer) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	override := s.override
	s.asked = append(s.asked, r.URL.Path)
	s.mu.Unlock()
	if override != nil {
		override(w, r)
		return
	}
	s.usual(w, r)
}

// usual answers.
func (s *apiServer) usual(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	v := s.version
	s.mu.Unlock()
	user := ""
	switch {
	case r.Header.Get("Authorization") == "Bearer "+goodToken:
		user = "system:serviceaccount:kube-system:steading"
	case len(r.TLS.PeerCertificates) > 0:
		user = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	switch {
	case user == "":
		reply(w, http.StatusUnauthorized, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: 401})
	case r.URL.Query().Get("watch") == "true":
		s.watch(w, r)
	case strings.HasPrefix(r.URL.Path, "/apis/rbac.authorization.k8s.io/"), strings.HasPrefix(r.URL.Path, "/apis/admissionregistration.k8s.io/"):
		s.objects.serve(w, r)
	case r.URL.Path == "/version":
		reply(w, http.StatusOK, version.Info{GitVersion: v})
	default:
		review := authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectReview"}}
		review.Status.UserInfo.Username = user
		reply(w, http.StatusCreated, review)
	}
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request) {
	end := make(chan struct{})
	s.mu.Lock()
	s.watchers[end] = true
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush() //nolint:forcetypeassert // It is one.
	select {
	case <-end:
	case <-r.Context().Done():
	}
	s.mu.Lock()
	delete(s.watchers, end)
	s.mu.Unlock()
}

func reply(w http.ResponseWriter, code int, with any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	b, err := json.Marshal(with)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(b)
}

// probe the endpoint with a client of its own.
func probe(t *testing.T, e Endpoint) (answer, error) {
	t.Helper()
	c, err := e.client()
	if err != nil {
		return answer{}, err
	}
	defer c.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return e.probe(ctx, c)
}

// notIn fails when text holds one of the secrets.
func notIn(t *testing.T, text string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		if s != "" && strings.Contains(text, s) {
			t.Errorf("a secret is in %q", text)
		}
	}
}
