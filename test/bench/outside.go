package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/package/charts"
	"github.com/steading-dev/steading/test/harness"
)

// outsideTenant is in the names of what is made outside. There is no such tenant.
const outsideTenant = "outside"

// Outside is the bare loop: a namespace and a Helm install of the runtime chart with the values that the platform gives it,
// as the administrator, with discovery kept. Nothing is admitted, guarded, verified or reported.
type outside struct {
	admin  client.Client
	config *rest.Config
	cached discovery.CachedDiscoveryInterface
	mapper meta.RESTMapper
	caps   *chartutil.Capabilities
	image  string
	// sent are Helm's requests.
	sent atomic.Int64
}

func newOutside(cfg *rest.Config, registry string) (*outside, error) {
	cfg.QPS, cfg.Burst = -1, -1
	admin, err := harness.Client(cfg)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(d)
	o := &outside{admin: admin, cached: cached, mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached), image: registry + "/steading-dev/devops:1.4.2"}
	o.config = counting{&o.sent}.of(cfg)
	version, err := cached.ServerVersion()
	if err != nil {
		return nil, err
	}
	apis, err := action.GetVersionSet(cached)
	if err != nil {
		return nil, err
	}
	o.caps = &chartutil.Capabilities{
		KubeVersion: chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		APIVersions: apis, HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}
	return o, nil
}

// create a namespace, install into it and wait until the runtime is there.
func (o *outside) create(ctx context.Context, name string) error {
	if err := o.install(ctx, name); err != nil {
		return err
	}
	return o.waitAvailable(ctx, name)
}

func (o *outside) waitAvailable(ctx context.Context, name string) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: names.EnvironmentNamespace(outsideTenant, name), Name: names.Release(outsideTenant)}}
	return eventually(ctx, "deployment "+name+" outside", func(ctx context.Context) (bool, error) {
		err := o.admin.Get(ctx, client.ObjectKeyFromObject(d), d)
		return d.Status.AvailableReplicas == 1, err
	})
}

func (o *outside) install(ctx context.Context, name string) error {
	namespace := names.EnvironmentNamespace(outsideTenant, name)
	if err := o.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	cfg, err := o.helm(namespace)
	if err != nil {
		return err
	}
	chart, err := charts.Runtime()
	if err != nil {
		return err
	}
	in := action.NewInstall(cfg)
	in.ReleaseName, in.Namespace = names.Release(outsideTenant), namespace
	in.DisableHooks, in.SkipCRDs, in.DisableOpenAPIValidation = true, true, true
	_, err = in.RunWithContext(ctx, chart, map[string]any{
		"tenant": outsideTenant, "environment": name, "namespace": namespace, "version": "1.4.2", "image": o.image, "stopped": false,
		"docker": map[string]any{"enabled": false},
		"caps":   map[string]any{"cpu": "8", "memory": "20Gi", "storage": "40Gi"},
	})
	return err
}

// remove the release and the namespace, and wait until that is gone.
func (o *outside) remove(ctx context.Context, name string) error {
	namespace := names.EnvironmentNamespace(outsideTenant, name)
	cfg, err := o.helm(namespace)
	if err != nil {
		return err
	}
	un := action.NewUninstall(cfg)
	un.DisableHooks = true
	if _, err := un.Run(names.Release(outsideTenant)); err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := o.admin.Delete(ctx, ns); err != nil {
		return err
	}
	return eventually(ctx, "namespace "+namespace+" gone", func(ctx context.Context) (bool, error) {
		err := o.admin.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		return err != nil, client.IgnoreNotFound(err)
	})
}

// burst makes so many at once and tells how long that took, and how many requests each was. It removes them.
func (o *outside) burst(ctx context.Context, n int) (time.Duration, float64, error) {
	name := func(i int) string { return fmt.Sprintf("burst%d", i) }
	start, before := time.Now(), o.sent.Load()
	if err := together(n, func(i int) error { return o.install(ctx, name(i)) }); err != nil {
		return 0, 0, err
	}
	requests := 1 + float64(o.sent.Load()-before)/float64(n) // One makes the namespace.
	for i := range n {
		if err := o.waitAvailable(ctx, name(i)); err != nil {
			return 0, 0, err
		}
	}
	took := time.Since(start)
	return took, requests, together(n, func(i int) error { return o.remove(ctx, name(i)) })
}

func (o *outside) helm(namespace string) (*action.Configuration, error) {
	cs, err := kubernetes.NewForConfig(o.config)
	if err != nil {
		return nil, err
	}
	g := getter{outside: o, namespace: namespace}
	kc := kube.New(g)
	kc.Namespace = namespace
	return &action.Configuration{
		RESTClientGetter: g, KubeClient: kc, Capabilities: o.caps, Log: func(string, ...any) {},
		Releases: storage.Init(driver.NewSecrets(cs.CoreV1().Secrets(namespace))),
	}, nil
}

// A getter gives Helm the administrator's way to the plane.
type getter struct {
	*outside
	namespace string
}

func (g getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

func (g getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) { return g.cached, nil }

func (g getter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

func (g getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}})
}

// together does n things at once.
func together(n int, do func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
