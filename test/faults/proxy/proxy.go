// Package proxy stands between the processes of a platform and their API server. It passes everything on as it is, tokens
// and watches included, counts the requests that change something, and lets a test step in at any one of them: to kill the
// process that asks, before the API server hears of it or after it has done it, to cut the answer, or to make it wait.
package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/steading-dev/steading/test/authority"
)

// Proxy is a front of one API server for one client.
type Proxy struct {
	server   *http.Server
	address  string
	ca       []byte
	upstream *httputil.ReverseProxy
	ended    chan struct{} // closed when the front serves no more

	mu    sync.Mutex
	fault *Fault
	seen  []Request
	log   bool
}

// Start a front of the API server at a URL, whose certificate is signed by ca.
func Start(server string, ca []byte) (*Proxy, error) {
	target, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("cannot read the API server's address: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("cannot read the API server's authority: it is not PEM")
	}
	own, err := authority.New("fault proxy")
	if err != nil {
		return nil, err
	}
	certificate, err := own.Server("127.0.0.1")
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	p := &Proxy{address: listener.Addr().String(), ca: own.PEM(), ended: make(chan struct{})}
	silent := log.New(io.Discard, "", 0) // Clients that die are what this is for.
	p.upstream = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true},
		FlushInterval:  -1, // Watches are streams.
		ModifyResponse: p.answered,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:       silent,
	}
	p.server = &http.Server{
		Handler: p, ErrorLog: silent, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	go func() {
		defer close(p.ended)
		_ = p.server.ServeTLS(listener, "", "") // It ends when it is closed.
	}()
	return p, nil
}

// URL of the front, for a kubeconfig.
func (p *Proxy) URL() string { return "https://" + p.address }

// CA is the PEM certificate that the front's own is verified by.
func (p *Proxy) CA() []byte { return p.ca }

// Close the front and all its connections.
func (p *Proxy) Close() error {
	err := p.server.Close()
	<-p.ended
	return err
}

// Record the requests that change something from now on, and return those recorded until now.
func (p *Proxy) Record() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen, p.log = nil, true
	return seen
}

// Arm a fault, in place of the one before. Nil disarms.
func (p *Proxy) Arm(f *Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// ServeHTTP passes a request on. It is what the front's server calls.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !mutates(r) {
		p.upstream.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // The client went away.
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	q := Request{User: user(r), Method: r.Method, Path: r.URL.Path, body: body}
	f := p.take(q)
	switch {
	case f == nil:
	case f.Before:
		f.strike(q)
	default:
		// What was asked for is done, whatever becomes of who asked.
		r = r.WithContext(context.WithValue(context.WithoutCancel(r.Context()), struckKey{}, struck{f, q}))
	}
	p.upstream.ServeHTTP(w, r)
}

// struck is a request that a fault happens to once it is answered.
type struck struct {
	fault   *Fault
	request Request
}

type struckKey struct{}

// take the fault if this is the request that it waits for.
func (p *Proxy) take(q Request) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.log {
		p.seen = append(p.seen, q)
	}
	f := p.fault
	if f == nil || f.Match != nil && !f.Match(q) {
		return nil
	}
	f.count++
	if f.count != f.At {
		return nil
	}
	p.fault = nil
	return f
}

// answered steps in after the API server has answered.
func (p *Proxy) answered(res *http.Response) error {
	if s, ok := res.Request.Context().Value(struckKey{}).(struck); ok {
		defer func() {
			if r := recover(); r != nil {
				_ = res.Body.Close()
				panic(r)
			}
		}()
		s.fault.strike(s.request)
	}
	return nil
}

// mutates reports whether a request changes anything that counts: leases are renewed and events written whatever is
// going on, and reviews and tokens change nothing.
func mutates(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	for _, part := range strings.Split(r.URL.Path, "/") {
		switch part {
		case "leases", "events", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "token":
			return false
		}
	}
	return r.URL.Query().Get("dryRun") == ""
}
