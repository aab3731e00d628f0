//go:build long

package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Two copies of this tree in different places, each built with a build cache of its own, make the same packages. The first cache
// is the one of whoever tests, which may hold what was built of other copies. The second is empty: to fill it takes two cores
// about 8 minutes for each architecture.
func TestTwoClonesMakeTheSamePackages(t *testing.T) {
	build := func(where string) map[string]string {
		dir := filepath.Join(t.TempDir(), where)
		copyTree(t, dir)
		o := options(dir)
		o.Platforms = []string{"linux/amd64", "linux/arm64"}
		a, err := All(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return digests(a)
	}
	first := build("a")
	t.Setenv("GOCACHE", t.TempDir())
	if diff := cmp.Diff(first, build("somewhere/else/with a space")); diff != "" {
		t.Errorf("-first, +second:\n%s", diff)
	}
	if len(first) < 7 {
		t.Errorf("built %v, want image, charts and packages", first)
	}
}

// copyTree copies what git would clone, and what is not yet committed.
func copyTree(t *testing.T, to string) {
	t.Helper()
	const root = "../.."
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("cannot list the files of the source tree: %v", err)
	}
	for _, f := range strings.Split(strings.Trim(string(out), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join(root, f))
		if os.IsNotExist(err) {
			continue // Deleted and not yet committed.
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(to, filepath.Dir(f)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, f), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
