package instance

import (
	"context"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/forgejo/child"
)

// definitionsResource tells whether the API server serves KubeVirt's kinds.
var definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// machines watches the VirtualMachines of runners and their instances, by the metadata only, for as long as the API server
// serves them: KubeVirt may be installed when the provider runs already.
type machines struct {
	client metadata.Interface

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	watches map[string]context.CancelFunc
}

func newMachines(c metadata.Interface) *machines {
	return &machines{client: c, watches: map[string]context.CancelFunc{}}
}

// source of the RunnerInstances whose machine changed.
func (m *machines) source() source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.queue = q
		return nil
	})
}

// Start watching, until ctx is done.
func (m *machines) Start(ctx context.Context) error {
	for _, resource := range child.MachineResources {
		definition := resource + "." + child.VirtualMachine.Group
		only := func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, definition).String()
		}
		informer := metadatainformer.NewFilteredMetadataInformer(m.client, definitionsResource, metav1.NamespaceAll, 0, cache.Indexers{}, only).Informer()
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { m.begin(ctx, resource) },
			DeleteFunc: func(any) { m.end(resource) },
		})
		if err != nil {
			return errors.Wrapf(err, "cannot watch for the definition %s", definition)
		}
		go informer.RunWithContext(ctx)
	}
	<-ctx.Done()
	return nil
}

// begin to watch a resource that is served now.
func (m *machines) begin(ctx context.Context, resource string) {
	ours := func(o *metav1.ListOptions) {
		o.LabelSelector = labels.SelectorFromSet(labels.Set{names.LabelManagedBy: names.ManagedBy}).String()
	}
	gvr := child.VirtualMachine.GroupVersion().WithResource(resource)
	informer := metadatainformer.NewFilteredMetadataInformer(m.client, gvr, metav1.NamespaceAll, 0, cache.Indexers{}, ours).Informer()
	// The only error is that the informer has ended, and it has not begun.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    m.wake,
		UpdateFunc: func(_, now any) { m.wake(now) },
		DeleteFunc: m.wake,
	})
	m.end(resource)
	ctx, cancel := context.WithCancel(ctx)
	m.mu.Lock()
	m.watches[resource] = cancel
	m.mu.Unlock()
	go informer.RunWithContext(ctx)
}

// end the watch of a resource that is not served any more.
func (m *machines) end(resource string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cancel := m.watches[resource]; cancel != nil {
		cancel()
		delete(m.watches, resource)
	}
}

// wake the RunnerInstance that a machine is of.
func (m *machines) wake(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	o, ok := obj.(metav1.Object)
	m.mu.Lock()
	q := m.queue
	m.mu.Unlock()
	if !ok || q == nil {
		return
	}
	for _, r := range requestFor(o) {
		q.Add(r)
	}
}
