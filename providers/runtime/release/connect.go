package release

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/render"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// A getter gives Helm the deployer's way to a target. Discovery is the target's own, which everybody may read.
type getter struct {
	namespace string
	config    *rest.Config
	target    *target.Target
}

// ToRESTConfig is the deployer's.
func (g getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

// ToDiscoveryClient is shared by all releases on the target.
func (g getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.target.Discovery, nil
}

// ToRESTMapper is shared by all releases on the target.
func (g getter) ToRESTMapper() (meta.RESTMapper, error) { return g.target.Mapper, nil }

// ToRawKubeConfigLoader says which namespace is meant where none is named.
func (g getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{
		Context: clientcmdapi.Context{Namespace: g.namespace},
	})
}

// connectHelm returns Helm for a release, acting as the deployer of its namespace.
func connectHelm(ctx context.Context, t *target.Target, r *render.Renderer, p v1alpha1.ReleaseParameters) (*helmEngine, error) {
	cfg, err := t.Deployer(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	caps, err := t.Capabilities()
	if err != nil {
		return nil, err
	}
	w := &witness{}
	cfg = w.of(cfg)
	cs, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make the deployer's client")
	}
	m, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make the deployer's client")
	}
	g := getter{namespace: p.Namespace, config: cfg, target: t}
	kc := kube.New(g)
	kc.Namespace = p.Namespace
	return &helmEngine{
		cfg: &action.Configuration{
			RESTClientGetter: g,
			KubeClient:       kc,
			Releases:         recordsIn(cs.CoreV1().Secrets(p.Namespace)),
			Capabilities:     caps,
			Log:              func(string, ...any) {},
		},
		renderer: r,
		rest:     cfg,
		name:     p.ReleaseName,
		live:     liveIn(ctx, m, t.Mapper),
		witness:  w,
		stamp:    stampOf(p, t.Mapper),
	}, nil
}

// deployerHistory reads a release's records as the deployer of its namespace.
func deployerHistory(ctx context.Context, t *target.Target, p v1alpha1.ReleaseParameters) (history, error) {
	cfg, err := t.Deployer(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	m, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make the deployer's client")
	}
	return readHistory(ctx, m, p.Namespace, p.ReleaseName)
}
