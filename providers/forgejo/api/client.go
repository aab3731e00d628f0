package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Limits of one request.
const (
	// Timeout of a request, from the dialing to the last byte.
	Timeout = 15 * time.Second
	// maxAnswer bytes of any answer but the jobs.
	maxAnswer = 4 << 20
	// maxJobs bytes of the list of jobs, which has no pages: about 100,000 jobs.
	maxJobs = 32 << 20

	dialTimeout = 5 * time.Second
)

// A Config is what a [Client] is made of.
type Config struct {
	// URL of Forgejo, path included when it is served below one: https://git.example.com. Tokens are sent in the clear
	// when it starts with http.
	URL string
	// Token that is shown. White space around it is taken off.
	Token string
	// Scope of all calls.
	Scope Scope
	// CA that the server's certificate has to be signed by, PEM. Empty: the system's.
	CA []byte
	// Dial makes connections, as where addresses are restricted. Nil: a dialer that gives up after five seconds.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Timeout of a request. 0: [Timeout].
	Timeout time.Duration
	// Observe is told of each request: an Operation, a Result, and how long it took. Nil: nobody is.
	Observe func(operation, result string, took time.Duration)
}

// Operations that an observer is told of, one for each kind of request. There are no others.
const (
	OperationVersion    = "version"
	OperationJobs       = "jobs"
	OperationRunners    = "runners"
	OperationRunner     = "runner"
	OperationRegister   = "register"
	OperationDeregister = "deregister"
	OperationUser       = "user"
)

// A Client of one scope of one Forgejo. It may be used by many goroutines, and keeps connections until [Client.Close].
type Client struct {
	base    string
	token   string
	scope   Scope
	http    *http.Client
	timeout time.Duration
	observe func(operation, result string, took time.Duration)
}

// New returns a client, or what is wrong with its parts. It does not connect.
func New(cfg Config) (*Client, error) {
	base, err := address(cfg.URL)
	if err != nil {
		return nil, err
	}
	if err := cfg.Scope.valid(); err != nil {
		return nil, fmt.Errorf("cannot use the scope: %w", err)
	}
	c := &Client{base: base + "/api/v1", token: strings.TrimSpace(cfg.Token), scope: cfg.Scope, timeout: cfg.Timeout, observe: cfg.Observe}
	if c.token == "" || strings.ContainsFunc(c.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("cannot use the token: it is empty, or has characters that no token has")
	}
	if c.timeout == 0 {
		c.timeout = Timeout
	}
	if c.observe == nil {
		c.observe = func(string, string, time.Duration) {}
	}
	t, err := transport(cfg)
	if err != nil {
		return nil, err
	}
	c.http = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// Close the connections that are idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// address of a Forgejo, without a slash at its end.
func address(raw string) (string, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", errors.New("cannot use the URL: it is none")
	case u.Scheme != "https" && u.Scheme != "http":
		return "", fmt.Errorf("cannot use the URL: its scheme is %q, and https or http is spoken", u.Scheme)
	case u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("cannot use the URL: it is more, or less, than an address: https://host")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

func transport(cfg Config) (*http.Transport, error) {
	t := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		DialContext:       cfg.Dial,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
		IdleConnTimeout:   90 * time.Second,
		// A burst of registrations keeps its connections.
		MaxIdleConnsPerHost: 8,
	}
	if t.DialContext == nil {
		t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	} else {
		t.Proxy = nil // It would hide the address that is judged.
	}
	if len(cfg.CA) == 0 {
		return t, nil
	}
	pool, err := roots(cfg.CA)
	t.TLSClientConfig.RootCAs = pool
	return t, err
}

// roots are the certificates of a bundle, all of which must be certificates.
func roots(bundle []byte) (*x509.CertPool, error) {
	pool, n := x509.NewCertPool(), 0
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("cannot use the CA bundle: it holds a %s, and may hold certificates only", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("cannot use the CA bundle: certificate %d cannot be read: %w", n+1, err)
		}
		pool.AddCert(cert)
		n++
	}
	if n == 0 {
		return nil, errors.New("cannot use the CA bundle: it holds no PEM certificate")
	}
	return pool, nil
}

// A call is one request of the API.
type call struct {
	operation string
	method    string
	path      string // Below /api/v1, query included.
	body      any
	want      int   // The status hoped for.
	most      int64 // Bytes of the answer. 0: maxAnswer.
	decode    func([]byte) error
}

// do a call, and tell the observer.
func (c *Client) do(ctx context.Context, k call) error {
	start := time.Now()
	err := c.roundTrip(ctx, k)
	c.observe(k.operation, resultOf(err), time.Since(start))
	return err
}

func (c *Client) roundTrip(ctx context.Context, k call) error {
	req, cancel, err := c.request(ctx, k)
	if err != nil {
		return err
	}
	defer cancel()
	res, err := c.http.Do(req)
	if err != nil {
		return c.broken(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	most := max(k.most, maxAnswer)
	body, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	switch {
	case err != nil:
		return c.broken(ctx, fmt.Errorf("its answer broke off: %w", err))
	case res.StatusCode != k.want:
		return c.judge(res, body, c.scope.permission())
	case int64(len(body)) > most:
		return failed(ErrUnavailable, "its answer has more than %d MiB", most>>20)
	case k.decode == nil:
		return nil
	}
	if err := k.decode(body); err != nil {
		return failed(ErrNotForgejo, "its answer cannot be read: %s", c.redact(shorten(err.Error())))
	}
	return nil
}

func (c *Client) request(ctx context.Context, k call) (*http.Request, context.CancelFunc, error) {
	var body io.Reader
	if k.body != nil {
		raw, err := json.Marshal(k.body)
		if err != nil {
			return nil, nil, err
		}
		body = bytes.NewReader(raw)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	req, err := http.NewRequestWithContext(ctx, k.method, c.base+k.path, body)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	req.Header.Set("Authorization", "token "+c.token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "steading-provider-forgejo")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, cancel, nil
}
