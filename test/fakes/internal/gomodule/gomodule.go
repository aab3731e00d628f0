// Package gomodule reads Go modules of other projects from Go's module cache, pinned and without requiring them.
package gomodule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// A Module of another project.
type Module struct {
	// Path and version, as path@version.
	Path string
	// Sum is its checksum, as go.sum has it.
	Sum string
}

// Dir is the folder of the module, which has to be what was pinned. It is downloaded unless the cache has it, outside of any
// module, whose requirements it must not change.
func (m Module) Dir(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.Path) //nolint:gosec // A pinned module.
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GO111MODULE=on")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	ran := cmd.Run()
	var got struct {
		Dir   string `json:"Dir"`
		Sum   string `json:"Sum"`
		Error string `json:"Error"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil || got.Error != "" {
		return "", fmt.Errorf("cannot download module %s: %w: %s%s", m.Path, errors.Join(ran, err), got.Error, stderr.String())
	}
	if got.Sum != m.Sum {
		return "", fmt.Errorf("cannot use module %s: it has the checksum %s and not %s", m.Path, got.Sum, m.Sum)
	}
	return got.Dir, nil
}
