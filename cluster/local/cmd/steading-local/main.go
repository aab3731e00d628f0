// Command steading-local runs Steading on this machine, with nothing installed
// but Go. What it starts outlives it, until it is told to end it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/steading-dev/steading/cluster/local"
)

type cli struct {
	Name     string `default:"steading" help:"Name of the platform; each has a state of its own."`
	StateDir string `help:"Folder that holds everything the platform writes. Default: a folder named after it in the user's cache folder." placeholder:"DIR"`

	Up        upCommand        `cmd:"" help:"Start the platform, or bring one that runs up to this source tree, apply the example claims and wait until they are ready."`
	Down      downCommand      `cmd:"" help:"End the platform and remove its state."`
	Status    statusCommand    `cmd:"" help:"Show what runs and how the claims are."`
	Tools     toolsCommand     `cmd:"" help:"Build what a platform runs into the user's cache folder, unless it is there. The other commands, and the tests, do that by themselves; this one shows how far it has come."`
	Supervise superviseCommand `cmd:"" hidden:"" help:"Run the platform in the foreground; up does this."`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("steading-local"), kong.Description("Runs Steading on this machine."), kong.UsageOnError())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k.BindTo(ctx, (*context.Context)(nil))
	s, err := c.state()
	k.FatalIfErrorf(err)
	k.FatalIfErrorf(k.Run(s))
}

// state is where the platform of that name lives.
func (c *cli) state() (*state, error) {
	dir := c.StateDir
	if dir == "" {
		planes, err := local.CacheDir("planes")
		if err != nil {
			return nil, err
		}
		dir = planes + "/" + c.Name
	}
	return newState(c.Name, dir)
}

type upCommand struct {
	Examples string        `default:"cluster/examples" help:"File or folder of the claims to apply, below the source tree unless absolute." placeholder:"PATH"`
	Edge     bool          `default:"true" negatable:"" help:"Start a second control plane, a cluster for tenants to register, which the examples do."`
	Node     string        `default:"kwok" enum:"kwok,containerd" help:"What runs the pods: kwok plays them, containerd runs them on this machine, which needs root and Debian 12."`
	Timeout  time.Duration `default:"5m" help:"How long the example claims may take to be ready."`
}

// Run starts the supervisor unless one runs, and has it install and apply.
func (u *upCommand) Run(ctx context.Context, s *state) error {
	if local.Node(u.Node) == local.NodeContainerd {
		if err := local.CanRunNode(ctx, func(line string) { fmt.Println(line) }); err != nil {
			return err
		}
	}
	if err := s.ensureSupervisor(ctx, u.Edge, u.Node); err != nil {
		return err
	}
	report, err := s.up(ctx, upRequest{Node: local.Node(u.Node), Examples: u.Examples, Timeout: u.Timeout}, func(line string) { fmt.Println(line) })
	if ctx.Err() != nil {
		return errors.New("interrupted: what was started goes on; `make down` ends it")
	}
	if report != nil {
		fmt.Println()
		printClaims(os.Stdout, report.Claims)
		fmt.Println()
		printAccess(os.Stdout, report)
	}
	return err
}

type downCommand struct{}

// Run ends the supervisor, and with it all it has started.
func (downCommand) Run(ctx context.Context, s *state) error {
	ran, err := s.down(ctx)
	if err != nil {
		return err
	}
	if !ran {
		fmt.Printf("platform %s does not run\n", s.name)
		return nil
	}
	fmt.Printf("platform %s ended\n", s.name)
	return nil
}

type toolsCommand struct {
	Node string `default:"kwok" enum:"kwok,containerd" help:"What is to run the pods: containerd takes more tools."`
}

// Run builds the tools.
func (c *toolsCommand) Run(ctx context.Context) error {
	tools := slices.Concat(local.AllTools, []local.Tool{local.Crank})
	if local.Node(c.Node) == local.NodeContainerd {
		tools = slices.Concat(tools, local.NodeTools)
	}
	_, err := local.BuildTools(ctx, func(line string) { fmt.Println(line) }, tools...)
	return err
}

type statusCommand struct{}

// Run prints what runs.
func (statusCommand) Run(ctx context.Context, s *state) error {
	report, err := s.status(ctx)
	if err != nil {
		return err
	}
	printComponents(os.Stdout, report.Components)
	fmt.Println()
	printClaims(os.Stdout, report.Claims)
	fmt.Println()
	printAccess(os.Stdout, report)
	return nil
}
