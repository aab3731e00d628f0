// Command forgejo-runner takes the one-job command line of Forgejo's runner, and does what package onejob does.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/steading-dev/steading/test/fakes/forgejo/onejob"
)

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
	o, tokenURL, err := onejob.Parse(args)
	if err != nil {
		return err
	}
	if o.Token, err = onejob.TokenFrom(tokenURL); err != nil {
		return err
	}
	o.Log, o.Stop = log, stop
	return onejob.Run(ctx, o)
}
