package platform

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/cluster/local"
)

// providerReady is how long the provider may take to fill its caches.
const providerReady = 2 * time.Minute

// runFunction starts the function, installs its package, and connects the two.
func (p *Platform) runFunction(ctx context.Context, b built) error {
	p.say("starting " + Function)
	certs, err := p.Plane.PackageCertificates(ctx, Function)
	if err != nil {
		return err
	}
	address, metrics, err := p.addresses(Function)
	if err != nil {
		return err
	}
	err = p.run(ctx, local.Component{
		Name: Function, Path: b.programs.function,
		Args:  append([]string{"--address=" + address, "--metrics-address=" + metrics, "--tls-server-certs-dir=" + certs}, p.options.FunctionArgs...),
		Ready: ready("http://" + metrics + "/readyz"),
	})
	if err != nil {
		return err
	}
	if err := p.installPackage(ctx, "Function", Function, b.pushed.function); err != nil {
		return err
	}
	return p.Plane.ConnectFunction(ctx, Function, address)
}

// runProvider installs the provider's package, and so its kinds, tells it where
// chart and image are, and starts it as its own ServiceAccount.
func (p *Platform) runProvider(ctx context.Context, b built) error {
	p.say("starting " + Provider)
	if err := p.installPackage(ctx, "Provider", Provider, b.pushed.provider); err != nil {
		return err
	}
	if err := p.Plane.ConnectProvider(ctx, Provider); err != nil {
		return err
	}
	if err := p.Plane.Apply(ctx, p.providerConfig(b.pushed)); err != nil {
		return err
	}
	kubeconfig, err := p.Plane.ServiceAccountKubeconfig(ctx, names.SystemNamespace, Provider)
	if err != nil {
		return err
	}
	health, metrics, err := p.addresses(Provider)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, providerReady)
	defer cancel()
	return p.run(ctx, local.Component{
		Name: Provider, Path: b.programs.provider,
		Args:  append([]string{"--health-address=" + health, "--metrics-address=" + metrics}, p.options.ProviderArgs...),
		Env:   append([]string{"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=" + names.SystemNamespace}, p.options.ProviderEnv...),
		Ready: ready("http://" + health + "/readyz"),
	})
}

// run a component, or restart the one that runs if there is anything new.
func (p *Platform) run(ctx context.Context, c local.Component) error {
	info, err := os.Stat(c.Path)
	if err != nil {
		return err
	}
	now := launch{path: c.Path, args: c.Args, env: c.Env, built: info.ModTime()}
	p.mu.Lock()
	before, runs := p.launched[c.Name]
	p.mu.Unlock()
	if runs && reflect.DeepEqual(before, now) {
		return p.Plane.Supervisor.WaitReady(ctx, c.Name)
	}
	if slices.Contains(p.Plane.Supervisor.Components(), c.Name) {
		err = p.Plane.Supervisor.Replace(ctx, c)
	} else {
		err = p.Plane.Supervisor.Start(ctx, c)
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.launched[c.Name] = now
	return nil
}

// launch is what a component was started with.
type launch struct {
	path      string
	args, env []string
	built     time.Time
}

// addresses are two on which a component may listen; it keeps them.
func (p *Platform) addresses(component string) (first, second string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := p.listens[component]; ok {
		return a[0], a[1], nil
	}
	var a [2]string
	for i := range a {
		port, err := p.Plane.ReservePort()
		if err != nil {
			return "", "", err
		}
		a[i] = "127.0.0.1:" + strconv.Itoa(port)
	}
	p.listens[component] = a
	return a[0], a[1], nil
}

// installPackage asks Crossplane to install a package. Its runtime is ours.
func (p *Platform) installPackage(ctx context.Context, kind, name, ref string) error {
	return p.Plane.Apply(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "pkg.crossplane.io/v1",
		"kind":       kind,
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"package": ref},
	}})
}

// providerConfig names the chart and the image that were just pushed. The edge is at an address of this machine, where no
// context may be unless that is said, if it is the loopback address.
func (p *Platform) providerConfig(pushed pushed) *unstructured.Unstructured {
	allowed := []any{}
	if p.options.Edge {
		allowed = append(allowed, p.Plane.Address()+"/32")
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "runtime.steading.dev/v1alpha1",
		"kind":       "ClusterProviderConfig",
		"metadata":   map[string]any{"name": names.DefaultProviderConfig},
		"spec": map[string]any{
			"runtimeChart":       map[string]any{"repository": pushed.chartRepository, "version": pushed.chartVersion},
			"canonicalImage":     pushed.image,
			"insecureRegistries": []any{p.Registry.Host()},
			"allowedTargets":     allowed,
			"components":         []any{map[string]any{"prefix": pushed.components}},
		},
	}}
}

// ready asks a readiness endpoint.
func ready(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close() //nolint:errcheck // Nothing is lost.
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s says %s", url, resp.Status)
		}
		return nil
	}
}
