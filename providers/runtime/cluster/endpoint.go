package cluster

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
	"github.com/steading-dev/steading/providers/runtime/cluster/seal"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// Times after which a cluster counts as not answering.
const (
	dialTimeout    = 10 * time.Second
	requestTimeout = 10 * time.Second
	// A connection that is silent for so long is pinged, and given up when the ping is not answered.
	silence     = 5 * time.Second
	pingTimeout = 5 * time.Second
)

// An Endpoint is all that it takes to reach a cluster.
type Endpoint struct {
	// Server is https://host:port.
	Server string
	// CA is the only authority that the server's certificate may come from, PEM.
	CA []byte
	// Credential to show.
	Credential Credential
	// Policy of addresses.
	Policy address.Policy
}

// NewEndpoint returns the endpoint, or what is wrong with its parts.
func NewEndpoint(server string, ca []byte, c Credential, p address.Policy) (Endpoint, error) {
	e := Endpoint{Server: seal.NormalServer(server), CA: ca, Credential: c, Policy: p}
	u, err := url.Parse(e.Server)
	switch {
	case err != nil:
		return Endpoint{}, problem(steading.ReasonAddressRefused, "spec.server is not a URL: https://host:port")
	case u.Scheme != "https":
		return Endpoint{}, problem(steading.ReasonAddressRefused, "spec.server has the scheme %q: only https is spoken to API servers", u.Scheme)
	case u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		return Endpoint{}, problem(steading.ReasonAddressRefused, "spec.server is more, or less, than an address: https://host:port")
	}
	if _, err := roots(ca); err != nil {
		return Endpoint{}, err
	}
	return e, nil
}

// roots are the certificates of a CA bundle, all of which must be certificates.
func roots(bundle []byte) (*x509.CertPool, error) {
	pool, n := x509.NewCertPool(), 0
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, problem(steading.ReasonCAMismatch, "spec.caBundle holds a %s: it may hold certificates only", block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, problem(steading.ReasonCAMismatch, "spec.caBundle: certificate %d cannot be read: %s", n+1, err)
		}
		pool.AddCert(c)
		n++
	}
	if n == 0 {
		return nil, problem(steading.ReasonCAMismatch, "spec.caBundle holds no PEM certificate: it takes the CA that signed the API server's certificate, PEM, in base64")
	}
	return pool, nil
}

// reaches reports whether both reach the same server with the same credential.
func (e Endpoint) reaches(o Endpoint) bool {
	return e.Server == o.Server && bytes.Equal(e.CA, o.CA) && e.Credential.equal(o.Credential)
}

// key tells endpoints apart without telling what is in them.
func (e Endpoint) key() string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(e.Server), e.CA, []byte(e.Credential.token), e.Credential.cert, e.Credential.key, []byte(e.Policy.Key())} {
		fmt.Fprintf(h, "%d:", len(part)) //nolint:errcheck // A hash never fails.
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Config is how clients of Kubernetes reach the endpoint. It has no timeout, so that they can watch.
func (e Endpoint) Config() *rest.Config {
	cfg := &rest.Config{
		Host:        e.Server,
		BearerToken: e.Credential.token,
		UserAgent:   userAgent,
		Dial:        e.Policy.Dialer(dialTimeout).DialContext,
		Proxy:       noProxy,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: e.CA, CertData: e.Credential.cert, KeyData: e.Credential.key,
		},
	}
	cfg.Wrap(target.RefuseRedirects)
	return cfg
}

// userAgent that targets see.
const userAgent = "steading-provider-runtime"

// client is one for the endpoint's own line: no timeout, since it watches, and a dead connection is noticed within seconds.
func (e Endpoint) client() (*http.Client, error) {
	pool, err := roots(e.CA)
	if err != nil {
		return nil, err
	}
	conf := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if e.Credential.token == "" {
		pair, err := tls.X509KeyPair(e.Credential.cert, e.Credential.key)
		if err != nil {
			return nil, problem(steading.ReasonCredentialMissing, "the client certificate and its key cannot be used: %s", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	t := &http.Transport{
		DialContext:           e.Policy.Dialer(dialTimeout).DialContext,
		TLSClientConfig:       conf,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: requestTimeout,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: pingTimeout},
		MaxConnsPerHost:       2,
	}
	return &http.Client{Transport: target.RefuseRedirects(t)}, nil
}

func noProxy(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // No proxy is what nil says.
