// Command devops is the platform's own runtime image: it tells about the environment it runs in, by the model context
// protocol at :17000/mcp, and serves /healthz, /readyz and /metrics at :9100. It changes nothing.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, log, os.Getenv); err != nil {
		log.Error(err.Error())
		os.Exit(1) //nolint:gocritic // exitAfterDefer: the process ends, and with it what stop would undo.
	}
}

func run(ctx context.Context, log *slog.Logger, getenv func(string) string) error {
	id, err := identityFrom(getenv)
	if err != nil {
		return err
	}
	addresses, err := addressesFrom(getenv)
	if err != nil {
		return err
	}
	e := &environment{identity: id, cgroup: os.DirFS("/sys/fs/cgroup"), home: getenv("HOME"), now: time.Now, started: time.Now()}
	s := newServer(e, log)
	if err := s.listen(addresses); err != nil {
		return err
	}
	log.Info("serving", "tenant", id.Tenant, "environment", id.Environment, "version", id.Version, "mcp", addresses.mcp, "metrics", addresses.metrics)
	return s.serve(ctx)
}

// identityFrom reads whose runtime this is from the process' environment.
func identityFrom(getenv func(string) string) (identity, error) {
	id := identity{}
	for _, v := range []struct {
		name  string
		value *string
	}{
		{"STEADING_TENANT", &id.Tenant},
		{"STEADING_ENVIRONMENT", &id.Environment},
		{"STEADING_NAMESPACE", &id.Namespace},
		{"STEADING_VERSION", &id.Version},
	} {
		*v.value = getenv(v.name)
		if *v.value == "" {
			return identity{}, fmt.Errorf("cannot start: %s is not set: set the four that say whose runtime this is", v.name)
		}
	}
	return id, nil
}

// addresses to listen on.
type addresses struct{ mcp, metrics string }

func addressesFrom(getenv func(string) string) (addresses, error) {
	mcp, err := addressFrom(getenv, "STEADING_MCP_PORT", "17000")
	if err != nil {
		return addresses{}, err
	}
	metrics, err := addressFrom(getenv, "STEADING_METRICS_PORT", "9100")
	if err != nil {
		return addresses{}, err
	}
	return addresses{mcp: mcp, metrics: metrics}, nil
}

func addressFrom(getenv func(string) string, name, fallback string) (string, error) {
	port := getenv(name)
	if port == "" {
		port = fallback
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("cannot start: %s is %q: set it to a port, or leave it away for %s", name, port, fallback)
	}
	return ":" + port, nil
}
