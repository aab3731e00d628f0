package mutants

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Tree is a copy of a working tree, to be broken.
type Tree struct {
	// Dir of the copy.
	Dir string
}

// Copy the files that git tracks in the tree at source, as they are there now, into a new folder.
func Copy(ctx context.Context, source, dir string) (Tree, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z")
	list.Dir = source
	out, err := list.Output()
	if err != nil {
		return Tree{}, fmt.Errorf("cannot list the files of %s: %w", source, err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(source, name), filepath.Join(dir, name)); err != nil {
			return Tree{}, fmt.Errorf("cannot copy the tree: %w", err)
		}
	}
	return Tree{Dir: dir}, nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if os.IsNotExist(err) {
		return nil // Deleted, and git was not told yet.
	}
	if err != nil {
		return err
	}
	b, err := os.ReadFile(from) //nolint:gosec // A file of ours.
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	return os.WriteFile(to, b, info.Mode().Perm()) //nolint:gosec // As the file is.
}

// Apply a patch.
func (t Tree) Apply(ctx context.Context, m Mutant) error { return t.git(ctx, m, "apply") }

// Revert a patch that was applied.
func (t Tree) Revert(ctx context.Context, m Mutant) error { return t.git(ctx, m, "apply", "--reverse") }

// git is told that there is no repository around, so that paths are the patch's own.
func (t Tree) git(ctx context.Context, m Mutant, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append(args, "-C1", m.Path)...) //nolint:gosec // Our own patches.
	cmd.Dir = t.Dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(t.Dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the patch does not apply any more, make it anew: %s", bytes.TrimSpace(out))
	}
	return nil
}
