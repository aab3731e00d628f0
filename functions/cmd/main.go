// Command function-steading is the composition function of all of Steading's claims.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/steading-dev/steading/functions/serve"
)

type cli struct {
	Address        string `default:":9443" help:"Address to serve gRPC on."`
	MetricsAddress string `default:":8080" help:"Address to serve /metrics, /healthz and /readyz on; empty for none."`
	TLSDir         string `env:"TLS_SERVER_CERTS_DIR" help:"Folder with tls.crt, tls.key and ca.crt." name:"tls-server-certs-dir"`
	Insecure       bool   `help:"Serve without TLS. For tests on one machine only."`
	Debug          bool   `help:"Log more." short:"d"`
}

func main() {
	var c cli
	k := kong.Parse(&c, kong.Name("function-steading"), kong.Description("Composes Steading's Tenants and Environments."))
	k.FatalIfErrorf(c.run())
}

func (c *cli) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	level := slog.LevelInfo
	if c.Debug {
		level = slog.LevelDebug
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	fn := serve.NewFunction(serve.Composers(), serve.NewMetrics(registry))
	return serve.Serve(ctx, fn, serve.Options{
		Address:        c.Address,
		MetricsAddress: c.MetricsAddress,
		TLSDir:         c.TLSDir,
		Insecure:       c.Insecure,
		Log:            slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
		Registry:       registry,
	})
}
