// Command provider-forgejo reconciles the kinds of group forgejo.steading.dev: pools of runners for Forgejo Actions.
package main

import (
	"os"
	"time"

	"github.com/alecthomas/kong"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	kubevirtv1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/forgejo/child"
	"github.com/steading-dev/steading/providers/forgejo/instance"
	"github.com/steading-dev/steading/providers/forgejo/namespace"
	"github.com/steading-dev/steading/providers/forgejo/pool"
	"github.com/steading-dev/steading/providers/forgejo/server"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// name of the provider, its lease and its events.
const name = names.ProviderForgejo

// flags of the binary.
type flags struct {
	kit.Flags `embed:""`

	DeregisterFor time.Duration `help:"How long to try to deregister a runner that is deleted. Then it is let go, and an event on its pool's claim says what may be left." default:"2m" env:"DEREGISTER_FOR"`
}

func main() {
	f := flags{}
	k := kong.Parse(&f, kong.Name(name), kong.Description("Makes Steading's runner pools true."), kong.UsageOnError())
	k.FatalIfErrorf(provider(f).Run(ctrl.SetupSignalHandler(), f.Flags, f.Logger(os.Stderr, name)), "%s", name)
}

// provider that the flags ask for.
func provider(f flags) kit.Provider {
	return kit.Provider{
		Name: name,
		ProviderConfigs: kit.ProviderConfigs{
			GroupVersion:  v1alpha1.GroupVersion,
			Config:        &v1alpha1.ProviderConfig{},
			ClusterConfig: &v1alpha1.ClusterProviderConfig{},
			Usage:         &v1alpha1.ProviderConfigUsage{},
		},
		// KubeVirt's kinds are known, and need not be served.
		Kinds:   []func(*runtime.Scheme) error{v1alpha1.AddToScheme, kubevirtv1.AddToScheme},
		Outside: instance.Outside(),
		Written: map[string][]string{v1alpha1.RunnerKind: {v1alpha1.RunnerInstanceKind}},
		Setup:   func(mgr manager.Manager, o kit.Options) error { return setup(mgr, o, f) },
	}
}

// setup all controllers.
func setup(mgr manager.Manager, o kit.Options, f flags) error {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return errors.Wrap(err, "cannot make a discovery client")
	}
	servers := server.New(server.Options{
		Reader: mgr.GetClient(), Uncached: mgr.GetAPIReader(), ControlPlane: mgr.GetConfig().Host, Clock: o.Clock, Log: o.Log.WithValues("controller", "servers"),
	})
	if err := mgr.Add(servers); err != nil {
		return errors.Wrap(err, "cannot add the sessions with servers to the manager")
	}
	guard := namespace.New(mgr.GetClient(), mgr.GetAPIReader(), o.Clock)
	err = pool.Setup(mgr, pool.Options{
		Options: o, Servers: servers, Guard: guard, Check: child.Check, Try: child.Trial{Client: mgr.GetClient()}.Try, Kinds: child.Kinds{Discovery: d},
	})
	if err != nil {
		return err
	}
	return instance.Setup(mgr, instance.Options{Options: o, Servers: servers, LetGoAfter: f.DeregisterFor})
}
