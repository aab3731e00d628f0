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

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/cluster/local"
)

// providerReady is how long a provider may take to fill its caches.
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
		Name: Function, Path: b.programs[Function],
		Args:  append([]string{"--address=" + address, "--metrics-address=" + metrics, "--tls-server-certs-dir=" + certs}, p.options.FunctionArgs...),
		Ready: ready("http://" + metrics + "/readyz"),
	})
	if err != nil {
		return err
	}
	if err := p.installPackage(ctx, "Function", Function, b.pushed.packages[Function]); err != nil {
		return err
	}
	return p.Plane.ConnectFunction(ctx, Function, address)
}

// runProviders installs the providers' packages, and so their kinds, tells them what
// the operator decides, and starts them.
func (p *Platform) runProviders(ctx context.Context, b built) error {
	var steps []func() error
	for name := range providers {
		steps = append(steps, func() error { return p.runProvider(ctx, b, name) })
	}
	return together(steps...)
}

// runProvider starts a provider as its own ServiceAccount.
func (p *Platform) runProvider(ctx context.Context, b built, name string) error {
	p.say("starting " + name)
	if err := p.installPackage(ctx, "Provider", name, b.pushed.packages[name]); err != nil {
		return err
	}
	if err := p.Plane.ConnectProvider(ctx, name); err != nil {
		return err
	}
	if err := p.Plane.Apply(ctx, p.providerConfigs(b.pushed)[name]); err != nil {
		return err
	}
	kubeconfig, err := p.Plane.ServiceAccountKubeconfig(ctx, names.SystemNamespace, name)
	if err != nil {
		return err
	}
	health, metrics, err := p.addresses(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, providerReady)
	defer cancel()
	return p.run(ctx, local.Component{
		Name: name, Path: b.programs[name],
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

// providerConfigs are what the operator decides, by provider.
func (p *Platform) providerConfigs(pushed pushed) map[string]*unstructured.Unstructured {
	return map[string]*unstructured.Unstructured{Provider: p.runtimeConfig(pushed), RunnersProvider: p.runnersConfig()}
}

// runnersConfig lets Forgejo be on this machine, by plain HTTP.
func (p *Platform) runnersConfig() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": forgejov1.GroupVersion.String(),
		"kind":       forgejov1.ClusterProviderConfigKind,
		"metadata":   map[string]any{"name": names.DefaultProviderConfig},
		"spec":       map[string]any{"runnerImage": p.options.RunnerImage, "allowedServers": []any{p.Plane.Address() + "/32"}},
	}}
}

// runtimeConfig names the chart and the image that were just pushed. The edge is at an address of this machine, where no
// context may be unless that is said, if it is the loopback address.
func (p *Platform) runtimeConfig(pushed pushed) *unstructured.Unstructured {
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
