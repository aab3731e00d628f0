//go:build node

package node

import (
	"os/exec"
	"path"
	"path/filepath"
	"testing"

	"github.com/steading-dev/steading/package/build"
)

// pushProgram builds a command beside the tests, and pushes an image of it under a name below ours, with a tag.
func pushProgram(t *testing.T, command, name, tag string) build.Artifact {
	t.Helper()
	return push(t, build.Program{Name: command, File: compile(t, "./"+command)}, name, tag)
}

// compile a command to a static binary.
func compile(t *testing.T, command string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), path.Base(command))
	b := exec.Command("go", "build", "-trimpath", "-o", file, command)
	b.Env = append(b.Environ(), "CGO_ENABLED=0")
	if out, err := b.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v: %s", command, err, out)
	}
	return file
}

func push(t *testing.T, p build.Program, name, tag string) build.Artifact {
	t.Helper()
	below := path.Join(suite.Registry.Host(), "steading-dev")
	a, err := build.ProgramImage(below, p)
	if err != nil {
		t.Fatal(err)
	}
	a.Repository, a.Tags = path.Join(below, name), []string{tag}
	if err := build.Push(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return a
}
