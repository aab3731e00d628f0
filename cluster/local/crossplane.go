package local

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CrossplaneNamespace is where Crossplane keeps what is its own.
const CrossplaneNamespace = "crossplane-system"

// Names that Crossplane's chart gives, or its code expects.
const (
	crossplaneAccount  = "crossplane"
	rbacManagerAccount = "rbac-manager"
	crossplaneRole     = "crossplane"
	crossplaneRootCA   = "crossplane-root-ca"
	crossplaneClient   = "crossplane-tls-client"
	crossplaneServer   = "crossplane-tls-server"
)

// maxReconcileRate is how many things Crossplane reconciles at once, and a second. Its default of 100 is more than an API server
// of two cores answers: what it reads then is old, claims are written back and forth by it, and a burst of environments asks
// several times as much of the API server and takes as many times as long.
const maxReconcileRate = "--max-reconcile-rate=20"

// startCrossplane runs Crossplane's two processes with the identities and
// exactly the roles of its own chart. Packages with a runtime are left to us:
// see ConnectFunction and ConnectProvider.
func (p *Plane) startCrossplane(ctx context.Context, args []string) error {
	p.progress("starting crossplane")
	objects, err := renderCrossplaneRBAC(p.tools.Asset(Crossplane, "cluster/charts/crossplane"))
	if err != nil {
		return err
	}
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": CrossplaneNamespace}}}
	if err := p.Apply(ctx, append([]*unstructured.Unstructured{ns}, objects...)...); err != nil {
		return err
	}
	// Before `core init`, which applies the same, but fails unless they are served.
	if err := p.ApplyFiles(ctx, p.tools.Asset(Crossplane, "cluster/crds")); err != nil {
		return err
	}
	if err := p.initCrossplane(ctx); err != nil {
		return err
	}
	if err := p.dumpSecret(ctx, crossplaneClient, p.file("crossplane/client")); err != nil {
		return err
	}
	if err := p.waitAggregated(ctx); err != nil {
		return err
	}
	return p.together(func() error { return p.startCrossplaneCore(ctx, args) }, func() error { return p.startRBACManager(ctx) })
}

// initCrossplane makes certificates and singletons, as an init container would.
func (p *Plane) initCrossplane(ctx context.Context) error {
	return p.waitFor(ctx, time.Minute, func(ctx context.Context) (bool, error) {
		cmd := exec.CommandContext(ctx, p.tools.Path(Crossplane), "core", "init", //nolint:gosec // A tool of ours.
			"--namespace="+CrossplaneNamespace, "--service-account="+crossplaneAccount,
			"--cr-ds-path="+p.tools.Asset(Crossplane, "cluster/crds"),
			"--webhook-configurations-path="+p.tools.Asset(Crossplane, "cluster/webhookconfigurations"), "--enable-webhooks=false",
			"--tlsca-secret-name="+crossplaneRootCA, "--tls-server-secret-name="+crossplaneServer, "--tls-client-secret-name="+crossplaneClient,
			"--activation=*")
		cmd.Env = append(inherited(), "KUBECONFIG="+p.Kubeconfig())
		if out, err := cmd.CombinedOutput(); err != nil {
			return false, fmt.Errorf("cannot initialize crossplane: %w: %s", err, tail(string(out), 5))
		}
		return true, nil
	})
}

func (p *Plane) startCrossplaneCore(ctx context.Context, args []string) error {
	kubeconfig, err := p.ServiceAccountKubeconfig(ctx, CrossplaneNamespace, crossplaneAccount)
	if err != nil {
		return err
	}
	for _, dir := range []string{"crossplane/server", "crossplane/xpkg"} {
		if err := os.MkdirAll(p.file(dir), 0o700); err != nil {
			return err
		}
	}
	return p.startOnFreePorts(ctx, 2, func(port []int) Component {
		return Component{
			Name: "crossplane", Path: p.tools.Path(Crossplane),
			// Realtime compositions are on by default, and so are the defaults of
			// the circuit breaker: what a plane shows has to hold for a user's cluster.
			Args: append([]string{
				"core", "start", "--namespace=" + CrossplaneNamespace, "--service-account=" + crossplaneAccount,
				"--enable-webhooks=false", maxReconcileRate, "--package-runtime=External", "--xpkg-cache-dir=" + p.file("crossplane/xpkg"),
				"--tls-client-secret-name=" + crossplaneClient, "--tls-client-certs-dir=" + p.file("crossplane/client"),
				"--tls-server-secret-name=" + crossplaneServer, "--tls-server-certs-dir=" + p.file("crossplane/server"),
				"--metrics-port=" + strconv.Itoa(port[0]), "--health-probe-port=" + strconv.Itoa(port[1]),
			}, args...),
			Env: append(slices.Clone(memoryForTime), "KUBECONFIG="+kubeconfig),
			Ready: func(ctx context.Context) error {
				return get(ctx, http.DefaultClient, "http://"+loopback(port[1])+"/readyz")
			},
		}
	})
}

func (p *Plane) startRBACManager(ctx context.Context) error {
	kubeconfig, err := p.ServiceAccountKubeconfig(ctx, CrossplaneNamespace, rbacManagerAccount)
	if err != nil {
		return err
	}
	return p.Supervisor.Start(ctx, Component{
		Name: "crossplane-rbac-manager", Path: p.tools.Path(Crossplane),
		Args: []string{"rbac", "start", "--provider-clusterrole=crossplane:allowed-provider-permissions"},
		Env:  append(slices.Clone(memoryForTime), "KUBECONFIG="+kubeconfig),
	})
}

// memoryForTime trades memory, of which a developer's machine has more, for the
// time the garbage collector takes from everybody else on few cores: a quarter
// of what the API server needs by default.
var memoryForTime = []string{"GOGC=300"}

// dumpSecret writes the keys of one of Crossplane's Secrets as files.
func (p *Plane) dumpSecret(ctx context.Context, name, dir string) error {
	s := &corev1.Secret{}
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: CrossplaneNamespace, Name: name}, s); err != nil {
		return fmt.Errorf("cannot read certificates of crossplane: %w", err)
	}
	for key, content := range s.Data {
		if err := writePrivate(dir+"/"+key, content); err != nil {
			return fmt.Errorf("cannot write certificates of crossplane: %w", err)
		}
	}
	return nil
}

// waitAggregated waits until the controller manager has filled Crossplane's role.
func (p *Plane) waitAggregated(ctx context.Context) error {
	role := &rbacv1.ClusterRole{}
	err := p.waitFor(ctx, time.Minute, func(ctx context.Context) (bool, error) {
		err := p.client.Get(ctx, client.ObjectKey{Name: crossplaneRole}, role)
		return len(role.Rules) > 0, err
	})
	if err != nil {
		return fmt.Errorf("cannot wait until ClusterRole %s is aggregated: %w", crossplaneRole, err)
	}
	return nil
}

// renderCrossplaneRBAC renders Crossplane's chart and keeps its identities and
// their power.
func renderCrossplaneRBAC(dir string) ([]*unstructured.Unstructured, error) {
	chart, err := loader.LoadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot load the chart of crossplane: %w", err)
	}
	release := chartutil.ReleaseOptions{Name: "crossplane", Namespace: CrossplaneNamespace, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, nil, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("cannot render the chart of crossplane: %w", err)
	}
	rendered, err := engine.Render(chart, values)
	if err != nil {
		return nil, fmt.Errorf("cannot render the chart of crossplane: %w", err)
	}
	kinds := []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding"}
	var kept []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue // Notes for a person.
		}
		objects, err := parseObjects([]byte(rendered[name]))
		if err != nil {
			return nil, fmt.Errorf("cannot read %s of the chart of crossplane: %w", name, err)
		}
		for _, o := range objects {
			if slices.Contains(kinds, o.GetKind()) {
				kept = append(kept, o)
			}
		}
	}
	return kept, nil
}
