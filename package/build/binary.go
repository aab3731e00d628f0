package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// binary builds a command of the source tree for a platform. It depends on nothing but the sources and the version of
// Go: neither on where they are, nor on git, nor on what the caller set for other builds.
func binary(ctx context.Context, repoDir, pkg string, p v1.Platform) ([]byte, error) {
	dir, err := os.MkdirTemp("", "steading-build-")
	if err != nil {
		return nil, fmt.Errorf("cannot build %s: %w", pkg, err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // A temporary folder.
	out := filepath.Join(dir, "binary")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", out, pkg) //nolint:gosec // G204: a package of ours.
	cmd.Dir = repoDir
	cmd.Env = goEnvironment(os.Environ(), p)
	log := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("cannot build %s for %s: %w\n%s", pkg, p.String(), err, strings.TrimSpace(log.String()))
	}
	b, err := os.ReadFile(out) //nolint:gosec // G304: just made.
	if err != nil {
		return nil, fmt.Errorf("cannot build %s: %w", pkg, err)
	}
	return b, nil
}

// goEnvironment is the caller's without what changes a binary.
func goEnvironment(environ []string, p v1.Platform) []string {
	fixed := map[string]string{
		"CGO_ENABLED": "0", "GOOS": p.OS, "GOARCH": p.Architecture, "GOFLAGS": "-mod=readonly", "GOWORK": "off", "GOEXPERIMENT": "",
		"GO386": "", "GOAMD64": "", "GOARM": "", "GOARM64": "", "GODEBUG": "", "GOFIPS140": "",
	}
	var out []string
	for _, kv := range environ {
		if k, _, _ := strings.Cut(kv, "="); k != "" {
			if _, ok := fixed[k]; !ok {
				out = append(out, kv)
			}
		}
	}
	for k, v := range fixed {
		if v != "" {
			out = append(out, k+"="+v)
		}
	}
	if p.Architecture == "arm" && p.Variant != "" {
		out = append(out, "GOARM="+strings.TrimPrefix(p.Variant, "v"))
	}
	return out
}
