package kit

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/go-logr/logr"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

// TestAConfigGoesWithTheLastOfItsUsers, which nothing else wakes it for: their usages went before them.
func TestAConfigGoesWithTheLastOfItsUsers(t *testing.T) {
	cpc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig}}
	cpc.Finalizers = []string{"in-use.crossplane.io"}
	release := using(&v1alpha1.Release{}, "acme-dev", byDefault())
	c := kube(t, interceptor.Funcs{}, cpc, release)
	for _, o := range []client.Object{cpc, release} {
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	runConfigs(t, c)

	now := func() (*v1alpha1.ClusterProviderConfig, error) {
		read := &v1alpha1.ClusterProviderConfig{}
		return read, c.Get(t.Context(), client.ObjectKeyFromObject(cpc), read)
	}
	within(t, "it is kept", func() bool {
		read, err := now()
		return err == nil && read.GetCondition("Terminating").Reason == "InUse"
	})
	gone(t, c, release)
	within(t, "it is gone", func() bool {
		_, err := now()
		return kerrors.IsNotFound(err)
	})
}

func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// runConfigs runs the controllers of configs until the test ends, on what an API server has.
func runConfigs(t *testing.T, c client.WithWatch) {
	t.Helper()
	mgr, err := manager.New(&rest.Config{}, manager.Options{
		Scheme: c.Scheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr(true)},
		NewCache: func(*rest.Config, cache.Options) (cache.Cache, error) {
			return &watching{from: c, ctx: t.Context()}, nil
		},
		NewClient: func(*rest.Config, client.Options) (client.Client, error) { return c, nil },
		MapperProvider: func(*rest.Config, *http.Client) (apimeta.RESTMapper, error) {
			return apimeta.NewDefaultRESTMapper(nil), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Log: logging.NewNopLogger(), Record: event.NewNopRecorder(), Limiter: ratelimiter.NewGlobal(100), MaxReconciles: 1}
	err = setupProviderConfigs(mgr, o, ProviderConfigs{
		GroupVersion: v1alpha1.GroupVersion, Config: &v1alpha1.ProviderConfig{}, ClusterConfig: &v1alpha1.ClusterProviderConfig{}, Usage: &v1alpha1.ProviderConfigUsage{},
	})
	if err != nil {
		t.Fatal(err)
	}
	var runs sync.WaitGroup
	t.Cleanup(runs.Wait)
	runs.Go(func() {
		if err := mgr.Start(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// watching is a cache whose informers watch an API server of a test. Nothing is read from it.
type watching struct {
	informertest.FakeInformers

	from client.WithWatch
	ctx  context.Context //nolint:containedctx // The test's, during which informers run.

	mu     sync.Mutex
	byType map[string]toolscache.SharedIndexInformer
}

// GetInformer of the objects of a kind.
func (w *watching) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := fmt.Sprintf("%T", obj)
	if i, ok := w.byType[name]; ok {
		return i, nil
	}
	list, err := w.listOf(obj)
	if err != nil {
		return nil, err
	}
	// It watches before it lists, since a watch here has no version to begin at.
	var began watch.Interface
	i := toolscache.NewSharedIndexInformer(toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			l, _ := list.DeepCopyObject().(client.ObjectList)
			events, err := w.watch(ctx, list)
			if err != nil {
				return nil, err
			}
			began = events
			return l, w.from.List(ctx, l)
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return began, nil },
	}, listsFirst{}), obj, 0, nil)
	if w.byType == nil {
		w.byType = map[string]toolscache.SharedIndexInformer{}
	}
	w.byType[name] = i
	go i.RunWithContext(w.ctx)
	return i, nil
}

// watch what is in a list, unless it is of configs: what is said of one does not wake its controller then.
func (w *watching) watch(ctx context.Context, list client.ObjectList) (watch.Interface, error) {
	if _, ok := list.(*v1alpha1.ClusterProviderConfigList); ok {
		return watch.NewFake(), nil
	}
	return w.from.Watch(ctx, list)
}

// WaitForCacheSync waits until all informers have listed.
func (w *watching) WaitForCacheSync(ctx context.Context) bool {
	w.mu.Lock()
	var synced []toolscache.InformerSynced
	for _, i := range w.byType {
		synced = append(synced, i.HasSynced)
	}
	w.mu.Unlock()
	return toolscache.WaitForCacheSync(ctx.Done(), synced...)
}

func (w *watching) listOf(obj client.Object) (client.ObjectList, error) {
	kind, err := apiutil.GVKForObject(obj, w.from.Scheme())
	if err != nil {
		return nil, err
	}
	o, err := w.from.Scheme().New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	l, ok := o.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list", o)
	}
	return l, nil
}

// listsFirst says of a client that its watches do not begin with what there is.
type listsFirst struct{}

func (listsFirst) IsWatchListSemanticsUnSupported() bool { return true }
