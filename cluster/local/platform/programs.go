package platform

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/steading-dev/steading/cluster/local"
)

// programs are the paths of our own binaries, by component.
type programs map[string]string

// buildPrograms builds function and providers from the source tree.
func (p *Platform) buildPrograms(ctx context.Context) (programs, error) {
	sources := maps.Clone(providers)
	sources[Function] = "./functions/cmd"
	built := programs{}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		p.say("building " + name)
		path, err := p.buildProgram(ctx, name, sources[name])
		if err != nil {
			return nil, err
		}
		built[name] = path
	}
	return built, nil
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
