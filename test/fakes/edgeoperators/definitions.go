package edgeoperators

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A Module has definitions of an operator's kinds. It is read, and nothing of it is built.
type Module struct {
	path, sum string
	files     []string
}

// The modules of the operators, pinned.
var (
	// DNSModule defines DNSEndpoint.
	DNSModule = Module{"sigs.k8s.io/external-dns@v0.20.0", "h1:rJ4Q5c32NStvI8J+u2nyM4bcKxZG4g1NLPL0p994U9M=", []string{"config/crd/standard/dnsendpoints.externaldns.k8s.io.yaml"}}
	// CertificateModule defines Certificate, and what it makes of one.
	CertificateModule = Module{"github.com/cert-manager/cert-manager@v1.20.0", "h1:czZamsFJ1YdKPhpv+SopJZN9t3W68vQBnFYUevSHGqY=", []string{
		"deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_certificaterequests.yaml",
		"deploy/crds/acme.cert-manager.io_orders.yaml", "deploy/crds/acme.cert-manager.io_challenges.yaml",
	}}
	// SecretsModule defines SecretStore, and ExternalSecret.
	SecretsModule = Module{"github.com/external-secrets/external-secrets@v0.16.2", "h1:iNY+gIgSyL5higXTfnz+hdPCaiB/43UiHLqE7HBpj68=", []string{
		"config/crds/bases/external-secrets.io_secretstores.yaml", "config/crds/bases/external-secrets.io_externalsecrets.yaml",
	}}
	// GatewayModule defines HTTPRoute.
	GatewayModule = Module{"sigs.k8s.io/gateway-api@v1.4.0", "h1:ZwlNM6zOHq0h3WUX2gfByPs2yAEsy/EenYJB78jpQfQ=", []string{"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"}}
)

// Definitions reads the CustomResourceDefinitions of a module, as its project ships them, from Go's module cache.
func Definitions(ctx context.Context, m Module) ([]*unstructured.Unstructured, error) {
	dir, err := download(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("cannot download module %s: %w", m.path, err)
	}
	out := make([]*unstructured.Unstructured, 0, len(m.files))
	for _, f := range m.files {
		raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f))) //nolint:gosec // A file of the module.
		if err != nil {
			return nil, fmt.Errorf("cannot read a definition of module %s: %w", m.path, err)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &u.Object); err != nil {
			return nil, fmt.Errorf("cannot read %s of module %s: %w", f, m.path, err)
		}
		out = append(out, u)
	}
	return out, nil
}

// download returns the folder of a module, which has to be what was pinned. It runs outside of any module, whose
// requirements it must not change.
func download(ctx context.Context, m Module) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.path) //nolint:gosec // A pinned module.
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
		return "", fmt.Errorf("%w: %s%s", errors.Join(ran, err), got.Error, stderr.String())
	}
	if got.Sum != m.sum {
		return "", fmt.Errorf("it has the checksum %s and not %s", got.Sum, m.sum)
	}
	return got.Dir, nil
}
