package kubevirt

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steading-dev/steading/test/fakes/internal/gomodule"
)

// module of KubeVirt, pinned to the version of kubevirt.io/api in go.mod.
var module = gomodule.Module{Path: "kubevirt.io/kubevirt@v1.6.0", Sum: "h1:xk7NgCHB3PVedEbuR7J+ehfR6ihmoDrjpl8tG3on3VE="}

// sources are the files of the module that make definitions. They need nothing of it but one another, and kubevirt.io/api.
var sources = []string{
	"pkg/pointer/pointer.go",
	"pkg/virt-operator/resource/generate/components/crds.go",
	"pkg/virt-operator/resource/generate/components/validations_generated.go",
}

// printer is a program that prints what they make.
//
//go:embed printer.go.txt
var printer []byte

// Definitions are the CustomResourceDefinitions of VirtualMachine and VirtualMachineInstance as KubeVirt's operator installs
// them: they are made by its own code, from Go's module cache, with the requirements of the module that the caller is in.
func Definitions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	all, err := definitions(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot make KubeVirt's definitions: %w", err)
	}
	return all, nil
}

func definitions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	from, err := module.Dir(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "steading-kubevirt-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // A temporary folder.
	if err := assemble(ctx, from, dir); err != nil {
		return nil, err
	}
	out, err := goCommand(ctx, dir, "run", "-mod=mod", ".")
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	return all, json.Unmarshal(out, &all)
}

// moduleLine of a go.mod.
var moduleLine = regexp.MustCompile(`(?m)^module .*$`)

// assemble a module in a folder that is KubeVirt's by its name, and has those of its files that are needed.
func assemble(ctx context.Context, from, dir string) error {
	out, err := goCommand(ctx, "", "env", "GOMOD")
	if err != nil {
		return err
	}
	ours := filepath.Dir(strings.TrimSpace(string(out)))
	requirements, err := os.ReadFile(filepath.Join(ours, "go.mod")) //nolint:gosec // Our own.
	if err != nil {
		return fmt.Errorf("this has to run inside a clone of the project: %w", err)
	}
	files := map[string][]byte{"main.go": printer, "go.mod": moduleLine.ReplaceAll(requirements, []byte("module kubevirt.io/kubevirt"))}
	if files["go.sum"], err = os.ReadFile(filepath.Join(ours, "go.sum")); err != nil { //nolint:gosec // Our own.
		return err
	}
	for _, f := range sources {
		if files[f], err = os.ReadFile(filepath.Join(from, filepath.FromSlash(f))); err != nil { //nolint:gosec // A file of the module.
			return err
		}
	}
	for name, raw := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, raw, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// goCommand runs the go command in a folder, and returns what it prints.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // Arguments of ours.
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GO111MODULE=on")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.Bytes(), nil
}
