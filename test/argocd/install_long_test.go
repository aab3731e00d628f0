//go:build long

package argocd

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steading-dev/steading/cluster/local"
)

// installArgoCD as its own manifests have it, with our settings over its own, and runs its controller and its repository
// server, as the controller's own account.
func (w *world) installArgoCD(t *testing.T) {
	t.Helper()
	manifests := func(folder string) []*unstructured.Unstructured {
		return kustomize(t, w.tools.Asset(local.ArgoCD, filepath.Join("manifests", folder)))
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": argo}}}
	objects := []*unstructured.Unstructured{namespace}
	for _, folder := range []string{"crds", "base/config", "base/application-controller-roles", "cluster-rbac/application-controller"} {
		objects = append(objects, manifests(folder)...)
	}
	objects = append(objects, kustomize(t, settingsFolder)...)
	for _, o := range objects[1:] {
		switch o.GetKind() {
		case "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition":
		default:
			o.SetNamespace(argo)
		}
	}
	if err := w.plane.Apply(t.Context(), append(objects, byTheServer()...)...); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := w.plane.ServiceAccountKubeconfig(t.Context(), argo, account)
	if err != nil {
		t.Fatal(err)
	}
	redis, repoServer, repoMetrics, metrics := w.port(t), w.port(t), w.port(t), w.port(t)
	temporary := filepath.Join(w.dir, "tmp")
	if err := os.Mkdir(temporary, 0o700); err != nil {
		t.Fatal(err)
	}
	env := func(program string) []string {
		return []string{
			"ARGOCD_BINARY_NAME=" + program, "KUBECONFIG=" + kubeconfig, "ARGOCD_FAKE_IN_CLUSTER=true", "HOSTNAME=" + account + "-0",
			"ARGOCD_GPG_ENABLED=false", "ARGOCD_ASK_PASS_SOCK=" + filepath.Join(temporary, "ask"), "TMPDIR=" + temporary, "HOME=" + temporary,
			"PATH=" + filepath.Dir(w.tools.Path(local.Kustomize)) + ":" + os.Getenv("PATH"),
		}
	}
	w.run(t, local.Component{Name: "argocd-redis", Path: w.tools.Path(local.ArgoCDRedis), Args: []string{redis}, Ready: listens(redis)})
	w.run(t, local.Component{
		Name: "argocd-repo-server", Path: w.tools.Path(local.ArgoCD), Env: env("argocd-repo-server"),
		Args:  []string{"--address=127.0.0.1", "--port=" + portOf(repoServer), "--metrics-address=127.0.0.1", "--metrics-port=" + portOf(repoMetrics), "--disable-tls", "--redis=" + redis},
		Ready: listens(repoServer),
	})
	w.counters = "http://" + metrics + "/metrics"
	w.run(t, local.Component{
		Name: account, Path: w.tools.Path(local.ArgoCD), Env: env(account),
		Args: []string{
			"--namespace=" + argo, "--kubeconfig=" + kubeconfig, "--repo-server=" + repoServer, "--repo-server-plaintext", "--redis=" + redis,
			"--metrics-port=" + portOf(metrics), "--app-resync=60", "--app-resync-jitter=0", "--persist-resource-health",
		},
		Ready: listens(metrics),
	})
}

// byTheServer are what Argo CD's API server, which we do without, makes when it first starts.
func byTheServer() []*unstructured.Unstructured {
	anything := []any{map[string]any{"group": "*", "kind": "*"}}
	return []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
			"metadata": map[string]any{"namespace": argo, "name": "default"},
			"spec": map[string]any{
				"sourceRepos": []any{"*"}, "clusterResourceWhitelist": anything,
				"destinations": []any{map[string]any{"server": "*", "namespace": "*"}},
			},
		}},
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret",
			"metadata":   map[string]any{"namespace": argo, "name": "argocd-secret"},
			"stringData": map[string]any{"server.secretkey": "of no use to anybody"},
		}},
	}
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// listens is whether an address takes connections.
func listens(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

// metrics of Argo CD's controller, as text.
func (w *world) metrics(t *testing.T) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.counters, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // Nothing is lost.
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
