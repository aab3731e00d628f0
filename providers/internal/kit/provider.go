package kit

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A Provider is what one binary runs: the controllers of one group and version.
type Provider struct {
	// Name of the provider, its lease and its events: provider-runtime.
	Name string
	// ProviderConfigs of the provider. Their group and version is that of all its kinds.
	ProviderConfigs
	// Kinds adds the provider's own kinds, and what else it uses, to a scheme that has Kubernetes' and the claims'.
	Kinds []func(*runtime.Scheme) error
	// Outside and OfTenants are kinds that it makes on the control plane's own cluster: see [ManagerOptions].
	Outside, OfTenants []client.Object
	// Written are the kinds that a controller writes besides its own, by its own.
	Written map[string][]string
	// Setup adds its controllers to the manager.
	Setup func(mgr manager.Manager, o Options) error
}

// Run the provider against the API server that KUBECONFIG or the cluster around it names, until ctx is done. It waits until its
// kinds and those of the claims are served.
func (p Provider) Run(ctx context.Context, f Flags, l logging.Logger) error {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return errors.Wrap(err, "cannot find the API server: set KUBECONFIG, or run in a cluster")
	}
	s, err := p.Scheme()
	if err != nil {
		return err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return errors.Wrap(err, "cannot make a discovery client")
	}
	if err := AwaitKinds(ctx, d, l, KindsOf(s, p.GroupVersion, steading.GroupVersion)...); err != nil {
		return err
	}
	mgr, err := p.Manager(cfg, f, l)
	if err != nil {
		return err
	}
	return errors.Wrap(mgr.Start(ctx), "cannot run the controllers")
}

// Manager returns a manager with all that the provider runs, to be started.
func (p Provider) Manager(cfg *rest.Config, f Flags, l logging.Logger) (manager.Manager, error) {
	s, err := p.Scheme()
	if err != nil {
		return nil, err
	}
	mo := ManagerOptions{Name: p.Name, Scheme: s, Outside: p.Outside, OfTenants: p.OfTenants}
	mgr, err := NewManager(cfg, f, mo)
	if err != nil {
		return nil, err
	}
	o := NewOptions(mgr, f, mo, l)
	if o.Definitions, err = NewDefinitions(mgr, p.Name, p.GroupVersion, p.Written, o); err != nil {
		return nil, err
	}
	if err := setupProviderConfigs(mgr, o, p.ProviderConfigs); err != nil {
		return nil, err
	}
	return mgr, p.Setup(mgr, o)
}

// Scheme of all kinds that the provider uses.
func (p Provider) Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme, steading.AddToScheme}, p.Kinds...) {
		if err := add(s); err != nil {
			return nil, errors.Wrap(err, "cannot build the scheme")
		}
	}
	return s, nil
}
