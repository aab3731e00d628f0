// Command provider-runtime reconciles the managed resources of group runtime.steading.dev.
package main

import (
	"io"
	"log"
	"os"

	"github.com/alecthomas/kong"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

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
	"github.com/steading-dev/steading/providers/runtime/render"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// name of the provider, its lease and its events.
const name = names.ProviderRuntime

func main() {
	render.ServeIfAsked()
	// Helm warns there of values that do not fit together, and quotes them. They may come from a Secret.
	log.SetOutput(io.Discard)
	f := kit.Flags{}
	k := kong.Parse(&f, kong.Name(name), kong.Description("Makes Steading's tenants and environments true."), kong.UsageOnError())
	k.FatalIfErrorf(provider().Run(ctrl.SetupSignalHandler(), f, f.Logger(os.Stderr, name)), "%s", name)
}

func provider() kit.Provider {
	return kit.Provider{
		Name: name,
		ProviderConfigs: kit.ProviderConfigs{
			GroupVersion:  v1alpha1.GroupVersion,
			Config:        &v1alpha1.ProviderConfig{},
			ClusterConfig: &v1alpha1.ClusterProviderConfig{},
			Usage:         &v1alpha1.ProviderConfigUsage{},
		},
		Kinds:     []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
		Outside:   home.Outside(),
		OfTenants: home.OfTenants(),
		Written: map[string][]string{
			v1alpha1.PlacementKind: {v1alpha1.LedgerKind, v1alpha1.UsageEventKind, v1alpha1.HomeKind, v1alpha1.ClusterKind},
			v1alpha1.ReleaseKind:   {v1alpha1.UsageEventKind},
			v1alpha1.EdgeKind:      {v1alpha1.EdgeRemainderKind},
		},
		Setup: setup,
	}
}

// setup all controllers.
func setup(mgr manager.Manager, o kit.Options) error {
	if err := home.Setup(mgr, o); err != nil {
		return err
	}
	pulled, renderer := &oci.ChartCache{}, render.New(render.Limits{})
	if err := placement.Setup(mgr, o, (&charts{reader: mgr.GetAPIReader(), pulled: pulled, render: renderer}).resolve); err != nil {
		return err
	}
	targets := target.New()
	if err := targets.Add(steading.PlatformContext, target.Platform, mgr.GetConfig()); err != nil {
		return err
	}
	if err := mgr.Add(targets); err != nil {
		return errors.Wrap(err, "cannot add the targets to the manager")
	}
	if err := metrics.Registry.Register(targets); err != nil {
		return errors.Wrap(err, "cannot register the metric of open breakers")
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
	return release.Setup(mgr, release.Options{Options: o, Targets: targets, Charts: pulled, Render: renderer})
}
