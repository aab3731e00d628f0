package platform

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/steading-dev/steading/cluster/local"
)

// programs are the paths of our own binaries.
type programs struct{ function, provider string }

// buildPrograms builds function and provider from the source tree.
func (p *Platform) buildPrograms(ctx context.Context) (programs, error) {
	p.say("building " + Function + " and " + Provider)
	function, err := p.buildProgram(ctx, Function, "./functions/cmd")
	if err != nil {
		return programs{}, err
	}
	provider, err := p.buildProgram(ctx, Provider, "./providers/runtime/cmd")
	return programs{function: function, provider: provider}, err
}

// buildProgram builds into the user's cache folder, where an unchanged program
// is not linked again, and copies from there: what runs must not be replaced.
func (p *Platform) buildProgram(ctx context.Context, name, pkg string) (string, error) {
	cache, err := local.CacheDir("bin")
	if err != nil {
		return "", err
	}
	built := filepath.Join(cache, name)
	unlock, err := local.Lock(ctx, built+".lock", func() { p.say("waiting for another process that builds " + name) })
	if err != nil {
		return "", err
	}
	defer unlock()
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", built, pkg) //nolint:gosec // A package of ours.
	cmd.Dir = p.source
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build %s from %s: %w: %s", name, pkg, err, bytes.TrimSpace(out))
	}
	path := filepath.Join(p.dir, "bin", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	b, err := os.ReadFile(built) //nolint:gosec // Just built.
	if err != nil {
		return "", err
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, b) { //nolint:gosec // What was built before.
		return path, nil
	}
	if err := os.WriteFile(path+".new", b, 0o700); err != nil { //nolint:gosec // A program has to be executable.
		return "", err
	}
	return path, os.Rename(path+".new", path)
}
