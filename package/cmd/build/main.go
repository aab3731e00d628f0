// Command build builds what Steading is installed from, and pushes it to a registry or writes it to a folder.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/steading-dev/steading/package/build"
)

type command struct {
	Registry   string   `default:"ghcr.io" help:"Registry, host with port. Loopback addresses are spoken to by plain HTTP."`
	Repository string   `default:"steading-dev" help:"Path in the registry below which everything is."`
	Version    string   `required:"" help:"Version of the packages and of the canonical image, such as v0.1.0."`
	ImageTag   []string `help:"Tags of the canonical image. Default: the version."`
	Platform   []string `default:"linux/amd64,linux/arm64" help:"Platforms to build for."`
	External   bool     `help:"Leave the binaries out of the packages, for a Crossplane with --package-runtime=External."`
	Source     string   `default:"." type:"existingdir" help:"Root of the source tree."`

	Push push `cmd:"" help:"Build everything and push it."`
	Save save `cmd:"" help:"Build everything and write it to a folder: .xpkg files, the chart's .tgz, the image's .tar."`
}

func (c *command) options() build.Options {
	return build.Options{
		RepoDir: c.Source, Registry: c.Registry, Repository: c.Repository, Version: c.Version, ImageTags: c.ImageTag,
		Platforms: c.Platform, External: c.External, Progress: func(what string) { fmt.Fprintln(os.Stderr, what) },
	}
}

type push struct{}

// Run builds everything, pushes it and prints the references by digest.
func (push) Run(ctx context.Context, c *command) error {
	a, err := build.PushAll(ctx, c.options())
	if err != nil {
		return err
	}
	return show(a)
}

type save struct {
	Dir string `arg:"" help:"Folder to write to. It is made if need be."`
}

// Run builds everything, writes it to a folder and prints the references by digest.
func (s save) Run(ctx context.Context, c *command) error {
	a, err := build.All(ctx, c.options())
	if err != nil {
		return err
	}
	for _, one := range a.All() {
		if err := build.Save(one, s.Dir); err != nil {
			return err
		}
	}
	return show(a)
}

func show(a *build.Artifacts) error {
	for _, one := range a.All() {
		if _, err := fmt.Printf("%s@%s\n", one.Tagged(), one.Digest); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	c := &command{}
	k := kong.Parse(c, kong.Description("Builds what Steading is installed from."), kong.BindTo(ctx, (*context.Context)(nil)))
	k.FatalIfErrorf(k.Run(c))
}
