//go:build long

package argocd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A gitRepository on this machine.
type gitRepository struct{ dir string }

// newRepository holds a copy of a folder, at path below its top.
func newRepository(t *testing.T, dir, from, path string) *gitRepository {
	t.Helper()
	r := &gitRepository{dir: dir}
	if err := os.CopyFS(filepath.Join(dir, path), os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	r.git(t, "init", "--quiet", "--initial-branch=main")
	return r
}

// url by which Argo CD finds it.
func (r *gitRepository) url() string { return "file://" + r.dir }

// replace a text in all files.
func (r *gitRepository) replace(t *testing.T, pairs ...string) {
	t.Helper()
	replacer := strings.NewReplacer(pairs...)
	err := filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(replacer.Replace(string(b))), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// edit a file, in which old has to be.
func (r *gitRepository) edit(t *testing.T, path, old, now string) {
	t.Helper()
	b := r.read(t, path)
	if !strings.Contains(b, old) {
		t.Fatalf("%s does not have %q: %s", path, old, b)
	}
	r.write(t, path, strings.ReplaceAll(b, old, now))
}

func (r *gitRepository) read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (r *gitRepository) write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, path), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// commit all that was edited, and return the revision.
func (r *gitRepository) commit(t *testing.T, message string) string {
	t.Helper()
	r.git(t, "add", "--all")
	r.git(t, "-c", "user.name=platform", "-c", "user.email=platform@example.com", "commit", "--quiet", "-m", message)
	return strings.TrimSpace(r.git(t, "rev-parse", "HEAD"))
}

func (r *gitRepository) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
