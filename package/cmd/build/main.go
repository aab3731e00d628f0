// Command build builds what Steading is installed from, and pushes it to a registry or writes it to a folder.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"github.com/steading-dev/steading/package/build"
)

type command struct {
	Registry string   `default:"ghcr.io/steading-dev" help:"Registry and path below which everything is. Loopback addresses are spoken to by plain HTTP."`
	Version  string   `required:"" help:"Version of the packages, of the chart steading and of the canonical image, such as v0.1.0."`
	ImageTag []string `help:"Tags of the canonical image. Default: the version."`
	Platform []string `default:"linux/amd64,linux/arm64" help:"Platforms to build for."`
	External bool     `help:"Leave the binaries out of the packages, for a Crossplane with --package-runtime=External."`
	Source   string   `default:"." type:"existingdir" help:"Root of the source tree."`

	Push push `cmd:"" help:"Build everything and push it."`
	Save save `cmd:"" help:"Build everything and write it to a folder: .xpkg files, charts as .tgz, the image's .tar."`
}

func (c *command) options() build.Options {
	host, repository, _ := strings.Cut(c.Registry, "/")
	return build.Options{
		RepoDir: c.Source, Registry: host, Repository: repository, Version: c.Version, ImageTags: c.ImageTag,
		Platforms: c.Platform, External: c.External, Progress: func(what string) { fmt.Fprintln(os.Stderr, what) },
	}
}

type push struct{}

// Run builds everything, pushes it and shows what it built.
func (push) Run(ctx context.Context, c *command) error {
	a, err := build.PushAll(ctx, c.options())
	if err != nil {
		return err
	}
	return show(os.Stdout, a)
}

type save struct {
	Dir string `arg:"" help:"Folder to write to. It is made if need be."`
}

// Run builds everything, writes it to a folder and shows what it built.
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
	return show(os.Stdout, a)
}

// show what was built as a table.
func show(w io.Writer, a *build.Artifacts) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows := []string{"NAME\tVERSION\tDIGEST\tSIZE\n"}
	for _, one := range a.All() {
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%.1f MiB\n", one.Repository, strings.Join(one.Tags, ","), one.Digest, float64(one.Size)/(1<<20)))
	}
	if _, err := io.WriteString(t, strings.Join(rows, "")); err != nil {
		return err
	}
	return t.Flush()
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	c := &command{}
	k := kong.Parse(c, kong.Description("Builds what Steading is installed from."), kong.BindTo(ctx, (*context.Context)(nil)))
	k.FatalIfErrorf(k.Run(c))
}
