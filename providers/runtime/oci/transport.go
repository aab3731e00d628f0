package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// maxRedirects of one request. Registries redirect blobs to object storage, once.
const maxRedirects = 3

// defaultTransport gives up on a dead host early.
var defaultTransport = func() http.RoundTripper {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second}
	t.DialContext = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t.ResponseHeaderTimeout = 30 * time.Second
	t.MaxIdleConnsPerHost = 4
	return t
}()

// A guard is the last transport before the wire. It refuses plain HTTP to hosts that are not listed, drops credentials
// on their way to another host than their own, and bounds what a registry may answer.
type guard struct {
	inner       http.RoundTripper
	registry    name.Registry
	credentials Credentials
	insecure    []string
	limit       int64
}

var errPlainHTTP = errors.New("plain HTTP is spoken only to hosts in spec.insecureRegistries of the ClusterProviderConfig")

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !listed(g.insecure, req.URL.Host) {
		return nil, fmt.Errorf("cannot speak to %s: %w", req.URL.Host, errPlainHTTP)
	}
	if req.Header.Get("Authorization") != "" && !g.credentials.mayReach(g.registry, req.URL.Host) {
		req = req.Clone(req.Context())
		req.Header.Del("Authorization")
	}
	res, err := g.inner.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	res.Body = &limitedBody{ReadCloser: res.Body, left: g.limit}
	return res, nil
}

type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("the registry answers with more than is allowed")
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// listed reports whether host is one of hosts, ports included.
func listed(hosts []string, host string) bool {
	return slices.ContainsFunc(hosts, func(h string) bool { return hostOf(h) == hostOf(host) })
}

// session is one registry spoken to with one credential for one repository.
type session struct {
	http       *http.Client
	base       string
	host       string
	credential bool // one was sent
	open       bool // the registry asks for none
}

// session pings the registry and takes part in its authentication.
func (c Client) session(ctx context.Context, repo name.Repository, limit int64) (*session, error) {
	auth, credential := c.Credentials.of(repo.Registry)
	g := &guard{inner: c.transport(), registry: repo.Registry, credentials: c.Credentials, insecure: c.Insecure, limit: limit}
	challenge, err := transport.Ping(ctx, repo.Registry, g)
	if err != nil {
		return nil, err
	}
	s := &session{credential: credential, open: challenge.Scheme == "", base: "https://" + repo.RegistryStr(), host: repo.RegistryStr()}
	if challenge.Insecure {
		s.base = "http://" + repo.RegistryStr()
	}
	t, err := transport.NewWithContext(ctx, repo.Registry, auth, g, []string{repo.Scope(transport.PullScope)})
	if err != nil {
		return nil, err
	}
	s.http = &http.Client{Transport: t, CheckRedirect: checkRedirect}
	return s, nil
}

// checkRedirect follows to public names only: a registry must not be able to make the provider read from inside.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errors.New("the registry redirects too often")
	}
	if req.URL.Hostname() == via[0].URL.Hostname() {
		return nil
	}
	if ip := net.ParseIP(req.URL.Hostname()); ip != nil && (ip.IsPrivate() || !ip.IsGlobalUnicast()) {
		return fmt.Errorf("the registry redirects to the private address %s", ip)
	}
	return nil
}
