// Command provider-runtime reconciles the managed resources of group runtime.steading.dev.
package main

import (
	"context"
	"io"
	"log"
	"os"

	"github.com/alecthomas/kong"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/boundary"
	"github.com/steading-dev/steading/providers/runtime/cluster"
	"github.com/steading-dev/steading/providers/runtime/edge"
	"github.com/steading-dev/steading/providers/runtime/home"
	"github.com/steading-dev/steading/providers/runtime/oci"
	"github.com/steading-dev/steading/providers/runtime/placement"
	"github.com/steading-dev/steading/providers/runtime/release"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// name of the provider, its lease and its events.
const name = names.ProviderRuntime

// written are the kinds that a controller writes besides its own, by its own.
var written = map[string][]string{
	v1alpha1.PlacementKind: {v1alpha1.LedgerKind, v1alpha1.UsageEventKind, v1alpha1.HomeKind, v1alpha1.ClusterKind},
	v1alpha1.ReleaseKind:   {v1alpha1.UsageEventKind},
	v1alpha1.EdgeKind:      {v1alpha1.EdgeRemainderKind},
}

func main() {
	// Helm's rendering warns there of values that do not fit together, and quotes them. They may come from a Secret.
	log.SetOutput(io.Discard)
	f := kit.Flags{}
	k := kong.Parse(&f, kong.Name(name), kong.Description("Makes Steading's tenants and environments true."), kong.UsageOnError())
	k.FatalIfErrorf(run(ctrl.SetupSignalHandler(), f, f.Logger(os.Stderr, name)), "%s", name)
}

// run the provider until the context is done.
func run(ctx context.Context, f kit.Flags, l logging.Logger) error {
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
	mo := kit.ManagerOptions{Name: name, Scheme: scheme, Outside: home.Outside()}
	mgr, err := kit.NewManager(cfg, f, mo)
	if err != nil {
		return err
	}
	o := kit.NewOptions(mgr, f, mo, l)
	if o.Definitions, err = kit.NewDefinitions(mgr, name, v1alpha1.GroupVersion, written, o); err != nil {
		return err
	}
	if err := setup(mgr, o); err != nil { //nolint:contextcheck // The targets run with the manager's context.
		return err
	}
	return errors.Wrap(mgr.Start(ctx), "cannot run the controllers")
}

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, steading.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, errors.Wrap(err, "cannot build the scheme")
		}
	}
	return s, nil
}

// setup all controllers.
func setup(mgr manager.Manager, o kit.Options) error {
	err := kit.SetupProviderConfigs(mgr, o, kit.ProviderConfigs{
		GroupVersion:  v1alpha1.GroupVersion,
		Config:        &v1alpha1.ProviderConfig{},
		ClusterConfig: &v1alpha1.ClusterProviderConfig{},
		Usage:         &v1alpha1.ProviderConfigUsage{},
	})
	if err != nil {
		return err
	}
	if err := home.Setup(mgr, o); err != nil {
		return err
	}
	pulled := &oci.ChartCache{}
	if err := placement.Setup(mgr, o, (&charts{reader: mgr.GetAPIReader(), pulled: pulled}).resolve); err != nil {
		return err
	}
	targets := target.New()
	if err := targets.Add(steading.PlatformContext, target.Platform, mgr.GetConfig()); err != nil {
		return err
	}
	if err := mgr.Add(targets); err != nil {
		return errors.Wrap(err, "cannot add the targets to the manager")
	}
	if err := cluster.Setup(mgr, o, targets); err != nil {
		return err
	}
	if err := boundary.Setup(mgr, o, targets); err != nil {
		return err
	}
	if err := edge.Setup(mgr, o, targets); err != nil {
		return err
	}
	return release.Setup(mgr, release.Options{Options: o, Targets: targets, Charts: pulled})
}
