package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// grace is how long requests in flight may take at the end. It is below the pod's 30 s.
const grace = 20 * time.Second

// A server of the two ports.
type server struct {
	mcp, metrics *http.Server
	listeners    map[*http.Server]net.Listener
	ready        atomic.Bool
}

func newServer(e *environment, log *slog.Logger) *server {
	s := &server{listeners: map[*http.Server]net.Listener{}}
	m := newMetrics(e.identity)
	s.mcp = httpServer(mcpHandler(newMCP(e, m)), log)
	s.metrics = httpServer(s.health(promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})), log)
	return s
}

// mcpHandler keeps no sessions, so that a restart interrupts nobody, and takes no requests that a browser makes on
// behalf of another site.
func mcpHandler(srv *mcp.Server) http.Handler {
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: 1 << 20, PropagateRequestCancellation: true,
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.NewCrossOriginProtection().Handler(h))
	return mux
}

func (s *server) health(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "not ready: starting or shutting down", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	return mux
}

func httpServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

func (s *server) listen(a addresses) error {
	for srv, address := range map[*http.Server]string{s.mcp: a.mcp, s.metrics: a.metrics} {
		l, err := net.Listen("tcp", address) //nolint:noctx // It listens until the process ends.
		if err != nil {
			return errors.Join(fmt.Errorf("cannot listen on %s: %w", address, err), s.close())
		}
		s.listeners[srv] = l
	}
	return nil
}

func (s *server) close() error {
	var errs []error
	for _, l := range s.listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// serve until ctx ends or a server fails, then let requests in flight end. There is no other replica that new ones could
// go to, so it does not wait for them to be sent elsewhere.
func (s *server) serve(ctx context.Context) error {
	ended := make(chan error, len(s.listeners))
	for srv, l := range s.listeners {
		go func() { ended <- srv.Serve(l) }()
	}
	s.ready.Store(true)
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-ended:
		failed = fmt.Errorf("cannot go on serving: %w", failed)
	}
	s.ready.Store(false)
	return errors.Join(failed, s.shutdown()) //nolint:contextcheck // The caller's context is over; what is in flight gets one of its own.
}

// shutdown the metrics last, so that readiness is answered until the end.
func (s *server) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	for _, srv := range []*http.Server{s.mcp, s.metrics} {
		if err := srv.Shutdown(ctx); err != nil {
			return fmt.Errorf("cannot shut down within %s: %w", grace, err)
		}
	}
	return nil
}
