package docs

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/harness"
)

var (
	suite  harness.Suite
	update = flag.Bool("update", false, "write what commands print into the pages")
)

// top of the source tree, seen from this folder.
const top = "../.."

func TestMain(m *testing.M) {
	suite.Main(m, platform.Options{
		Name: "docs", Edge: true, ProviderArgs: harness.NoPolling(),
		// A reader takes minutes for what takes seconds here. Crossplane's circuit breaker would take that for a composite
		// that never settles.
		CrossplaneArgs: []string{"--circuit-breaker-burst=10000"},
	})
}

// exposure is the page that is about a platform with external-dns and cert-manager. It comes last: all others are about one
// without.
const exposure = "exposure.md"

// TestConsole runs what the pages show, README.md first. It goes on after what differs, so that one run tells all.
func TestConsole(t *testing.T) {
	if _, err := suite.ApplyClaims(t.Context(), filepath.Join(top, "cluster", "examples"), harness.Within); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(pages, func(a, b string) int { return last(a) - last(b) })
	ran := 0
	for _, path := range append([]string{filepath.Join(top, "README.md")}, pages...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if last(path) > 0 {
				suite.StartOperators(t)
				suite.IssueCertificates(t)
			}
			ran += runPage(t, path)
		})
	}
	if ran == 0 {
		t.Error("no page has a console block, so this shows nothing")
	}
}

// last is 1 for the page that comes last, and 0 for all others.
func last(path string) int {
	if filepath.Base(path) == exposure {
		return 1
	}
	return 0
}

// settled is how long it may take until what a command shows stays as it is.
const settled = 20 * time.Second

// runPage returns how many commands it ran.
func runPage(t *testing.T, path string) (ran int) {
	t.Helper()
	p, err := readPage(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.pieces {
		x := &p.pieces[i]
		if x.command == "" {
			continue
		}
		ran++
		have, err := runUntil(t.Context(), x.command, x.output)
		if err == nil {
			continue
		}
		if *update {
			x.output = have
			continue
		}
		t.Errorf("%s:%d: %s\n%v", filepath.Base(path), x.line, x.command, err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(p.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return ran
}

// looks are commands that change nothing, and may be repeated until what they show is there.
var looks = regexp.MustCompile(`^kubectl (--kubeconfig=\S+ )?(get|describe|events|auth|logs) `)

// runUntil a command prints what is expected. The error says what differs.
func runUntil(ctx context.Context, command string, want []string) ([]string, error) {
	within := harness.Within
	if *update && looks.MatchString(command) {
		within = settled
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var have []string
	for {
		out, err := run(ctx, command)
		if ctx.Err() == nil {
			have = linesOf(out)
			if matches(want, have) {
				return have, nil
			}
		}
		if ctx.Err() != nil || err != nil || !looks.MatchString(command) {
			return have, errors.New("it prints otherwise than shown (-shown +printed, after masking):\n" + cmp.Diff(masked(want), masked(have)))
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// run a command as a reader would. That it fails is for its output to tell; an error is that it could not be run.
func run(ctx context.Context, command string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir = top
	cmd.Env = append(os.Environ(), "KUBECONFIG="+suite.Plane.Kubeconfig(), "EDGE="+suite.Edge.Kubeconfig(),
		"PATH="+filepath.Dir(suite.Kubectl())+":"+os.Getenv("PATH"))
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if errors.As(err, new(*exec.ExitError)) {
		err = nil
	}
	if err != nil {
		return out.String(), fmt.Errorf("cannot run %s: %w", command, err)
	}
	return out.String(), nil
}

func linesOf(out string) []string {
	out = strings.TrimRight(out, "\n")
	if out == "" {
		return nil
	}
	lines := strings.Split(out, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func masked(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, mask(l))
	}
	return out
}
