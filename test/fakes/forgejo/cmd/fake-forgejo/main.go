// Command fake-forgejo serves a stand-in for Forgejo, with a world to start from. Everything else is done below /fake/.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/steading-dev/steading/test/fakes/forgejo"
)

// options may come from the environment, as in a container.
type options struct {
	Listen        string        `default:":3000" env:"FAKE_FORGEJO_LISTEN" help:"Address to serve."`
	Version       string        `env:"FAKE_FORGEJO_VERSION" help:"Version to be."`
	Admin         string        `default:"root" env:"FAKE_FORGEJO_ADMIN" help:"Name of an administrator."`
	Token         string        `env:"FAKE_FORGEJO_TOKEN" help:"Token of the administrator, for everything. Empty: none."`
	Organizations []string      `env:"FAKE_FORGEJO_ORGANIZATIONS" help:"Organizations, owned by the administrator." name:"organization"`
	Repositories  []string      `env:"FAKE_FORGEJO_REPOSITORIES" help:"Repositories, owner/name, of the administrator or an organization." name:"repository"`
	Zombie        time.Duration `env:"FAKE_FORGEJO_ZOMBIE_TASK_TIMEOUT" help:"How long a task may go without a report."`
	Endless       time.Duration `env:"FAKE_FORGEJO_ENDLESS_TASK_TIMEOUT" help:"How long a task may take."`
	Abandoned     time.Duration `env:"FAKE_FORGEJO_ABANDONED_JOB_TIMEOUT" help:"How long a job may wait."`
}

func main() {
	var o options
	k := kong.Parse(&o, kong.Name("fake-forgejo"), kong.UsageOnError())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	k.FatalIfErrorf(err)
}

// run until the context is done.
func run(ctx context.Context, o options) error {
	s, err := world(o)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	return serve(ctx, l, s)
}

func serve(ctx context.Context, l net.Listener, s *forgejo.Server) error {
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	fmt.Println("listening on " + l.Addr().String())
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

// world to start from.
func world(o options) (*forgejo.Server, error) {
	s := forgejo.New(forgejo.Options{
		Version: o.Version, Timeouts: forgejo.Timeouts{Zombie: o.Zombie, Endless: o.Endless, Abandoned: o.Abandoned},
	})
	errs := []error{s.AddUser(o.Admin, true)}
	if o.Token != "" {
		errs = append(errs, s.SetToken(o.Token, o.Admin, "all"))
	}
	for _, name := range o.Organizations {
		errs = append(errs, s.AddOrganization(name, o.Admin))
	}
	for _, full := range o.Repositories {
		owner, name, _ := strings.Cut(full, "/")
		errs = append(errs, s.AddRepository(owner, name, true))
	}
	return s, errors.Join(errs...)
}
