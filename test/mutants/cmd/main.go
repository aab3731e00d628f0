// Command cmd hunts the mutants in test/mutants: each has to be killed by the test it names.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/test/mutants"
)

func main() {
	only := flag.String("run", "", "Hunt the mutants whose names match this regular expression only.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := hunt(ctx, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func hunt(ctx context.Context, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("cannot read -run: %w", err)
	}
	source, err := local.ModuleDir(ctx)
	if err != nil {
		return err
	}
	all, err := mutants.Read(filepath.Join(source, "test", "mutants"))
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m mutants.Mutant) bool { return !pattern.MatchString(m.Name) })
	dir, err := os.MkdirTemp("", "steading-mutants-")
	if err != nil {
		return fmt.Errorf("cannot make a folder to break: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // A temporary folder.
	tree, err := mutants.Copy(ctx, source, dir)
	if err != nil {
		return err
	}
	if err := tree.Sound(ctx, all); err != nil {
		return err
	}
	return each(ctx, tree, all)
}

// each mutant is hunted, and a line of the table printed as soon as it is known.
func each(ctx context.Context, tree mutants.Tree, all []mutants.Mutant) error {
	var left []mutants.Result
	for _, m := range all {
		r := tree.Hunt(ctx, m)
		fmt.Printf("%-9s  %5.1fs  %-34s  %s %s\n", r.Verdict, r.Took.Seconds(), r.Name, r.Package, r.Test)
		if r.Verdict != mutants.Killed {
			left = append(left, r)
		}
	}
	for _, r := range left {
		fmt.Printf("\n%s is %s: %s\n%s\n", r.Name, r.Verdict, r.What, r.Why)
	}
	fmt.Printf("\n%d of %d mutants killed\n", len(all)-len(left), len(all))
	if len(left) > 0 {
		return fmt.Errorf("%d mutants were not killed", len(left))
	}
	return nil
}
