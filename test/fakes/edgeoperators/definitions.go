package edgeoperators

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/test/fakes/internal/gomodule"
)

// A Module has definitions of an operator's kinds. It is read, and nothing of it is built.
type Module struct {
	gomodule.Module
	files []string
}

// The modules of the operators, pinned.
var (
	// DNSModule defines DNSEndpoint.
	DNSModule = Module{gomodule.Module{Path: "sigs.k8s.io/external-dns@v0.20.0", Sum: "h1:rJ4Q5c32NStvI8J+u2nyM4bcKxZG4g1NLPL0p994U9M="}, []string{"config/crd/standard/dnsendpoints.externaldns.k8s.io.yaml"}}
	// CertificateModule defines Certificate, and what it makes of one.
	CertificateModule = Module{gomodule.Module{Path: "github.com/cert-manager/cert-manager@v1.20.0", Sum: "h1:czZamsFJ1YdKPhpv+SopJZN9t3W68vQBnFYUevSHGqY="}, []string{
		"deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_certificaterequests.yaml",
		"deploy/crds/acme.cert-manager.io_orders.yaml", "deploy/crds/acme.cert-manager.io_challenges.yaml",
	}}
	// SecretsModule defines SecretStore, and ExternalSecret.
	SecretsModule = Module{gomodule.Module{Path: "github.com/external-secrets/external-secrets@v0.16.2", Sum: "h1:iNY+gIgSyL5higXTfnz+hdPCaiB/43UiHLqE7HBpj68="}, []string{
		"config/crds/bases/external-secrets.io_secretstores.yaml", "config/crds/bases/external-secrets.io_externalsecrets.yaml",
	}}
	// GatewayModule defines HTTPRoute.
	GatewayModule = Module{gomodule.Module{Path: "sigs.k8s.io/gateway-api@v1.4.0", Sum: "h1:ZwlNM6zOHq0h3WUX2gfByPs2yAEsy/EenYJB78jpQfQ="}, []string{"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"}}
)

// Definitions reads the CustomResourceDefinitions of a module, as its project ships them, from Go's module cache.
func Definitions(ctx context.Context, m Module) ([]*unstructured.Unstructured, error) {
	dir, err := m.Dir(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(m.files))
	for _, f := range m.files {
		raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f))) //nolint:gosec // A file of the module.
		if err != nil {
			return nil, fmt.Errorf("cannot read a definition of module %s: %w", m.Path, err)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &u.Object); err != nil {
			return nil, fmt.Errorf("cannot read %s of module %s: %w", f, m.Path, err)
		}
		out = append(out, u)
	}
	return out, nil
}
