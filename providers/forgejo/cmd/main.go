// Command provider-forgejo reconciles the kinds of group forgejo.steading.dev: pools of runners for Forgejo Actions.
package main

import (
	"context"
	"os"
	"time"

	"github.com/alecthomas/kong"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	kubevirtv1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/child"
	"github.com/steading-dev/steading/providers/forgejo/instance"
	"github.com/steading-dev/steading/providers/forgejo/namespace"
	"github.com/steading-dev/steading/providers/forgejo/pool"
	"github.com/steading-dev/steading/providers/forgejo/server"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// name of the provider, its lease and its events.
const name = names.ProviderForgejo

// written are the kinds that a controller writes besides its own, by its own.
var written = map[string][]string{v1alpha1.RunnerKind: {v1alpha1.RunnerInstanceKind}}

// flags of the binary.
type flags struct {
	kit.Flags `embed:""`

	DeregisterFor time.Duration `help:"How long to try to deregister a runner that is deleted. Then it is let go, and an event on its pool's claim says what may be left." default:"2m" env:"DEREGISTER_FOR"`
}

func main() {
	f := flags{}
	k := kong.Parse(&f, kong.Name(name), kong.Description("Makes Steading's runner pools true."), kong.UsageOnError())
	k.FatalIfErrorf(run(ctrl.SetupSignalHandler(), f, f.Logger(os.Stderr, name)), "%s", name)
}

// run the provider until the context is done.
func run(ctx context.Context, f flags, l logging.Logger) error {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return errors.Wrap(err, "cannot find the API server: set KUBECONFIG, or run in a cluster")
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return errors.Wrap(err, "cannot make a discovery client")
	}
	if err := kit.AwaitKinds(ctx, d, l, kit.KindsOf(scheme, v1alpha1.GroupVersion, steading.GroupVersion)...); err != nil {
		return err
	}
	mo := managerOptions(scheme)
	mgr, err := kit.NewManager(cfg, f.Flags, mo)
	if err != nil {
		return err
	}
	o := kit.NewOptions(mgr, f.Flags, mo, l)
	if o.Definitions, err = kit.NewDefinitions(mgr, name, v1alpha1.GroupVersion, written, o); err != nil {
		return err
	}
	if err := setup(mgr, o, f); err != nil {
		return err
	}
	return errors.Wrap(mgr.Start(ctx), "cannot run the controllers")
}

func managerOptions(s *runtime.Scheme) kit.ManagerOptions {
	return kit.ManagerOptions{Name: name, Scheme: s, Outside: instance.Outside()}
}

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	// KubeVirt's kinds are known, and need not be served.
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, steading.AddToScheme, v1alpha1.AddToScheme, kubevirtv1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, errors.Wrap(err, "cannot build the scheme")
		}
	}
	return s, nil
}

// setup all controllers.
func setup(mgr manager.Manager, o kit.Options, f flags) error {
	err := kit.SetupProviderConfigs(mgr, o, kit.ProviderConfigs{
		GroupVersion:  v1alpha1.GroupVersion,
		Config:        &v1alpha1.ProviderConfig{},
		ClusterConfig: &v1alpha1.ClusterProviderConfig{},
		Usage:         &v1alpha1.ProviderConfigUsage{},
	})
	if err != nil {
		return err
	}
	servers := server.New(server.Options{
		Reader: mgr.GetClient(), Uncached: mgr.GetAPIReader(), ControlPlane: mgr.GetConfig().Host, Clock: o.Clock, Log: o.Log.WithValues("controller", "servers"),
	})
	if err := mgr.Add(servers); err != nil {
		return errors.Wrap(err, "cannot add the sessions with servers to the manager")
	}
	guard := namespace.New(mgr.GetClient(), mgr.GetAPIReader(), o.Clock)
	if err := pool.Setup(mgr, pool.Options{Options: o, Servers: servers, Guard: guard, Check: child.Check}); err != nil {
		return err
	}
	return instance.Setup(mgr, instance.Options{Options: o, Servers: servers, LetGoAfter: f.DeregisterFor})
}
