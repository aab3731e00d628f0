package kubevirt

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Options of a KubeVirt.
type Options struct {
	// FetchInterval and ReportInterval of the guests' runners. 0: as the stock runner has them, 2 s and 1 s.
	FetchInterval, ReportInterval time.Duration
}

// A KubeVirt plays the machines of a control plane. It is safe for many goroutines.
type KubeVirt struct {
	options   Options
	client    client.Client
	reader    client.Reader     // uncached
	transport http.RoundTripper // Of all guests.
	// ended is told of the instances whose guest ended.
	ended chan event.GenericEvent

	mu     sync.Mutex
	faults []*fault
	struck map[types.UID]FaultKind // By machine.
	guests map[types.UID]*guest    // By instance.
	boots  map[string]int          // By the name of the machine.
}

// Start KubeVirt on a control plane that has its [Definitions], until ctx is done. Then it is as one whose nodes failed: the
// guests end, and nobody says so.
func Start(ctx context.Context, cfg *rest.Config, o Options) (*KubeVirt, error) {
	k, mgr, err := assembled(cfg, o)
	if err != nil {
		return nil, fmt.Errorf("cannot start KubeVirt: %w", err)
	}
	go func() { _ = mgr.Start(ctx) }() // What it fails with nobody could do anything about.
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("cannot start KubeVirt: its caches are not filled: %w", ctx.Err())
	}
	return k, nil
}

func assembled(cfg *rest.Config, o Options) (*KubeVirt, ctrl.Manager, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kubevirtv1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, nil, err
		}
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = -1, -1
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: s, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: launchers}}},
	})
	if err != nil {
		return nil, nil, err
	}
	k := &KubeVirt{
		options: o, client: mgr.GetClient(), reader: mgr.GetAPIReader(),
		transport: &http.Transport{MaxIdleConnsPerHost: 1000, IdleConnTimeout: time.Minute},
		ended:     make(chan event.GenericEvent, 64),
		struck:    map[types.UID]FaultKind{}, guests: map[types.UID]*guest{}, boots: map[string]int{},
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("virtualmachine").For(&kubevirtv1.VirtualMachine{}).Owns(&kubevirtv1.VirtualMachineInstance{}).
		Complete(&machines{k})
	if err != nil {
		return nil, nil, err
	}
	return k, mgr, ctrl.NewControllerManagedBy(mgr).Named("virtualmachineinstance").For(&kubevirtv1.VirtualMachineInstance{}).Owns(&corev1.Pod{}).
		WatchesRawSource(source.Channel(k.ended, &handler.EnqueueRequestForObject{})).
		Complete(&instances{k})
}

// Running are the names of the machines whose guest runs, sorted.
func (k *KubeVirt) Running() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, g := range k.guests {
		if !g.over() {
			all = append(all, g.name)
		}
	}
	slices.Sort(all)
	return all
}

// Boots is how often a machine of this name was booted.
func (k *KubeVirt) Boots(name string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.boots[name]
}
