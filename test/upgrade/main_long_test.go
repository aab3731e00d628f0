//go:build long

package upgrade

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/harness"
)

// before is the version that is upgraded from: the last one without runner pools, whose Configuration has a package less.
const before = "ce8ca983b67f6f0ce6b287c733288b328c5f6d3f"

var suite harness.Suite

// TestMain starts a platform of the version before. Where none can run it says why, which in CI is a failure.
func TestMain(m *testing.M) {
	ctx := context.Background()
	old, err := checkOut(ctx, before)
	if err == nil {
		err = local.CanRunNode(ctx, func(line string) { fmt.Println(line) })
	}
	if err != nil {
		fmt.Println("suite upgrade is skipped:", err)
		if os.Getenv("CI") == "true" {
			os.Exit(1)
		}
		return
	}
	suite.Main(m, platform.Options{
		Name: "upgrade", Node: local.NodeContainerd, Source: old,
		// A life takes seconds here. Crossplane's circuit breaker would take that for a composite that never settles.
		CrossplaneArgs: []string{"--circuit-breaker-burst=10000"},
	})
}

// checkOut a commit to a folder that is removed by nobody but the system's own tidying: the test binary exits.
func checkOut(ctx context.Context, commit string) (string, error) {
	source, err := local.ModuleDir(ctx)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "steading-before-")
	if err != nil {
		return "", err
	}
	archive := filepath.Join(dir, "source.tar")
	for _, step := range [][]string{
		{"git", "-C", source, "archive", "--format=tar", "-o", archive, commit},
		{"tar", "-C", dir, "-xf", archive},
	} {
		out, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("cannot check out the version before, %s: %w: %s", commit, err, strings.TrimSpace(string(out)))
		}
	}
	return dir, os.Remove(archive)
}
