package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

const (
	// maxMessageBytes is the largest request and response. A composite with hundreds of children passes gRPC's default
	// of 4 MiB.
	maxMessageBytes = 32 << 20
	// deadline of one call. Composing takes under a millisecond; a call that takes this long is a bug, and Crossplane
	// would otherwise wait two minutes for it.
	deadline = 10 * time.Second
	// stopGrace is how long calls in flight may take to finish when the process is told to stop.
	stopGrace = 5 * time.Second
)

// Options say where and how to serve. The zero value serves nothing.
type Options struct {
	// Address to serve gRPC on, host:port.
	Address string
	// MetricsAddress serves /metrics, /healthz and /readyz by plain HTTP, host:port. Empty: not at all.
	MetricsAddress string
	// TLSDir holds tls.crt, tls.key and ca.crt. Clients must present a certificate of that CA. The files are read again at
	// each handshake, so that they can be renewed in place.
	TLSDir string
	// Insecure serves without TLS when TLSDir is empty. For tests and rendering on one machine only.
	Insecure bool
	// Log for what a person should know.
	Log *slog.Logger
	// Registry whose metrics are served.
	Registry *prometheus.Registry
	// Started is called with the address that is listened on, once it is. May be nil.
	Started func(addr net.Addr)
}

// Serve runs fn until ctx is done, then lets calls in flight finish.
func Serve(ctx context.Context, fn fnv1.FunctionRunnerServiceServer, o Options) error {
	creds, err := transport(o)
	if err != nil {
		return err
	}
	srv := grpc.NewServer(append(creds,
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.MaxSendMsgSize(maxMessageBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute}),
		grpc.ChainUnaryInterceptor(recovered(o.Log), bounded(deadline)),
	)...)
	fnv1.RegisterFunctionRunnerServiceServer(srv, fn)
	hs := health.NewServer()
	healthv1.RegisterHealthServer(srv, hs)
	reflection.Register(srv)

	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", o.Address, err)
	}
	stopHTTP, err := serveHTTP(ctx, o)
	if err != nil {
		return errors.Join(err, lis.Close())
	}
	defer stopHTTP()
	if o.Started != nil {
		o.Started(lis.Addr())
	}

	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(lis) }()
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve gRPC: %w", err)
	case <-ctx.Done():
		hs.Shutdown()
		stop(srv)
		return nil
	}
}

// stop lets calls in flight finish, but not for ever.
func stop(srv *grpc.Server) {
	t := time.AfterFunc(stopGrace, srv.Stop)
	defer t.Stop()
	srv.GracefulStop()
}

// transport is how clients are authenticated.
func transport(o Options) ([]grpc.ServerOption, error) {
	if o.TLSDir == "" {
		if !o.Insecure {
			return nil, errors.New("no TLS: set --tls-server-certs-dir to a folder with tls.crt, tls.key and ca.crt, or --insecure for a test")
		}
		return nil, nil
	}
	if _, err := loadTLS(o.TLSDir); err != nil {
		return nil, err
	}
	return []grpc.ServerOption{grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return loadTLS(o.TLSDir) },
	}))}, nil
}

// loadTLS reads the server's certificate and the CA of its clients.
func loadTLS(dir string) (*tls.Config, error) {
	crt, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("cannot load the server's certificate: %w", err)
	}
	ca, err := os.ReadFile(filepath.Clean(filepath.Join(dir, "ca.crt")))
	if err != nil {
		return nil, fmt.Errorf("cannot read the CA of the clients: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("cannot use %s: it holds no PEM certificate", filepath.Join(dir, "ca.crt"))
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{crt},
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		NextProtos:   []string{"h2"},
	}, nil
}

// serveHTTP serves metrics and health, and returns how to stop.
func serveHTTP(ctx context.Context, o Options) (stop func(), err error) {
	if o.MetricsAddress == "" {
		return func() {}, nil
	}
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", ok)
	mux.HandleFunc("GET /readyz", ok)
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.MetricsAddress)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for metrics on %s: %w", o.MetricsAddress, err)
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := srv.Serve(lis); err != nil && !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error("cannot serve metrics", "error", err)
		}
	}()
	return func() { _ = srv.Close() }, nil
}

// recovered turns a panic into an error, so that one composite cannot take the others' function down.
func recovered(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (rsp any, err error) {
		defer func() {
			if p := recover(); p != nil {
				log.Error("panic", "value", p, "stack", string(debug.Stack()))
				err = errPanic
			}
		}()
		return h(ctx, req)
	}
}

// bounded gives every call a deadline.
func bounded(d time.Duration) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return h(ctx, req)
	}
}
