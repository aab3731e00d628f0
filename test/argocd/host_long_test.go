//go:build long

package argocd

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	xppkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/test/harness"
)

// host runs Steading's function and providers, once Crossplane is asked for their packages, in the place of pods.
func (w *world) host(t *testing.T) {
	t.Helper()
	w.hostFunction(t)
	w.hostProviders(t, map[string]string{names.ProviderRuntime: "./providers/runtime/cmd", names.ProviderForgejo: "./providers/forgejo/cmd"})
}

func (w *world) hostFunction(t *testing.T) {
	t.Helper()
	const name = "steading-dev-function-steading"
	function := w.program(t, "./functions/cmd")
	w.waitPackage(t, &xppkgv1.Function{}, name)
	certs, err := w.plane.PackageCertificates(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	address, metrics := w.port(t), w.port(t)
	w.run(t, local.Component{
		Name: "function-steading", Path: function, Ready: listens(address),
		Args: []string{"--address=" + address, "--metrics-address=" + metrics, "--tls-server-certs-dir=" + certs},
	})
	if err := w.plane.ConnectFunction(t.Context(), name, address); err != nil {
		t.Fatal(err)
	}
}

// hostProviders connects all before it starts one: none is ready before the Configuration brings its kinds, which Argo CD applies
// when all packages are healthy.
func (w *world) hostProviders(t *testing.T, sources map[string]string) {
	t.Helper()
	programs := map[string]string{}
	for name, pkg := range sources {
		programs[name] = w.program(t, pkg)
		w.waitPackage(t, &xppkgv1.Provider{}, "steading-dev-"+name)
		if err := w.plane.ConnectProvider(t.Context(), "steading-dev-"+name); err != nil {
			t.Fatal(err)
		}
	}
	for name, program := range programs {
		w.startProvider(t, name, program)
	}
}

func (w *world) startProvider(t *testing.T, name, provider string) {
	t.Helper()
	kubeconfig, err := w.plane.ServiceAccountKubeconfig(t.Context(), names.SystemNamespace, name)
	if err != nil {
		t.Fatal(err)
	}
	health, metrics := w.port(t), w.port(t)
	w.run(t, local.Component{
		Name: name, Path: provider, Ready: listens(health),
		Args: []string{"--health-address=" + health, "--metrics-address=" + metrics},
		Env:  []string{"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=" + names.SystemNamespace},
	})
}

func (w *world) waitPackage(t *testing.T, pkg client.Object, name string) {
	t.Helper()
	harness.Eventually(t, "package "+name+" is asked for", func(ctx context.Context) error {
		return w.plane.Client().Get(ctx, client.ObjectKey{Name: name}, pkg)
	})
}

// program builds one of ours.
func (w *world) program(t *testing.T, pkg string) string {
	t.Helper()
	out := filepath.Join(w.dir, filepath.Base(filepath.Dir(pkg)))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", out, pkg)
	cmd.Dir = filepath.Join("..", "..")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v: %s", pkg, err, b)
	}
	return out
}

func (w *world) run(t *testing.T, c local.Component) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Within)
	defer cancel()
	if err := w.plane.Supervisor.Start(ctx, c); err != nil {
		t.Fatal(err)
	}
}

// port is a free address of this machine.
func (w *world) port(t *testing.T) string {
	t.Helper()
	p, err := w.plane.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p))
}
