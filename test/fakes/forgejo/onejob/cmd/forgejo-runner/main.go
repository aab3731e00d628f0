// Command forgejo-runner takes the one-job command line of Forgejo's runner, and does what package onejob does.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/steading-dev/steading/test/fakes/forgejo/onejob"
)

type commandLine struct {
	OneJob struct {
		URL           string        `help:"Address of Forgejo." required:""`
		UUID          string        `help:"UUID of the registration." required:""`
		TokenURL      string        `help:"file: URL of the registration's token." name:"token-url" required:""`
		Label         []string      `help:"Label, name:host. May be given again." sep:"none"`
		Handle        string        `help:"The one attempt of a job to take."`
		Wait          bool          `help:"Wait for a job." short:"w"`
		FetchInterval time.Duration `default:"2s" help:"Time between two questions for a job."`
	} `cmd:"" help:"Run one job." name:"one-job"`
	Version kong.VersionFlag `help:"Say the version." short:"v"`
}

func main() {
	stop := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		close(stop)
	}()
	os.Exit(run(context.Background(), os.Args[1:], os.Stderr, stop))
}

// run the command, and return its exit code.
func run(ctx context.Context, args []string, log io.Writer, stop <-chan struct{}) int {
	err := oneJob(ctx, args, log, stop)
	if err != nil {
		_, _ = fmt.Fprintln(log, "Error: "+err.Error())
	}
	return onejob.ExitCode(err)
}

func oneJob(ctx context.Context, args []string, log io.Writer, stop <-chan struct{}) error {
	var c commandLine
	k, err := kong.New(&c, kong.Name("forgejo-runner"), kong.Vars{"version": "forgejo-runner version " + onejob.Version})
	if err != nil {
		return err
	}
	if _, err := k.Parse(args); err != nil {
		return err
	}
	token, err := onejob.TokenFrom(c.OneJob.TokenURL)
	if err != nil {
		return err
	}
	return onejob.Run(ctx, onejob.Options{
		URL: c.OneJob.URL, UUID: c.OneJob.UUID, Token: token, Labels: c.OneJob.Label, Handle: c.OneJob.Handle,
		Wait: c.OneJob.Wait, FetchInterval: c.OneJob.FetchInterval, Log: log, Stop: stop,
	})
}
