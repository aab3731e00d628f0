// Package referred is how the provider reads what a claim refers to in its tenant's namespace, and is told when it changes:
// by a right that it gives itself there for as long as the claim refers to something, and by a watch of each object.
package referred

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Resources that claims refer to.
var (
	Secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	ConfigMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// A Subject is one object of a tenant's that a managed resource depends on.
type Subject struct {
	// Resource it is one of.
	Resource schema.GroupVersionResource
	// Key is its namespace and name.
	Key client.ObjectKey
}

// Watches wake a managed resource when what its claim refers to changes. Each object is watched by its own name, metadata
// only: who watches all Secrets of a namespace would hold all of them. They are added to the manager, which ends them.
type Watches struct {
	client metadata.Interface
	wake   func(name string)

	mu     sync.Mutex
	ended  bool
	byName map[string]map[Subject]context.CancelFunc
}

// NewWatches returns watches by c, of nothing yet, that wake managed resources by name.
func NewWatches(c metadata.Interface, wake func(name string)) *Watches {
	return &Watches{client: c, wake: wake, byName: map[string]map[Subject]context.CancelFunc{}}
}

// Empty reports whether nothing is watched.
func (w *Watches) Empty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byName) == 0
}

// Of these subjects, and of no others, has the managed resource told.
func (w *Watches) Of(ctx context.Context, name string, subjects ...Subject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	have := w.byName[name]
	want := make(map[Subject]context.CancelFunc, len(subjects))
	for _, s := range subjects {
		if cancel, ok := have[s]; ok {
			want[s] = cancel
			continue
		}
		want[s] = w.start(ctx, name, s)
	}
	for s, cancel := range have {
		if want[s] == nil {
			cancel()
		}
	}
	w.byName[name] = want
	if len(want) == 0 {
		delete(w.byName, name)
	}
}

// start a watch, which outlives the reconcile that asks for it.
func (w *Watches) start(ctx context.Context, name string, s Subject) context.CancelFunc {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	only := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.Key.Name).String()
	}
	informer := metadatainformer.NewFilteredMetadataInformer(w.client, s.Resource, s.Key.Namespace, 0, cache.Indexers{}, only).Informer()
	wake := func() { w.wake(name) }
	// The only error is that the informer has ended, and it has not begun.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { wake() },
		UpdateFunc: func(any, any) { wake() },
		DeleteFunc: func(any) { wake() },
	})
	go informer.RunWithContext(ctx)
	return cancel
}

// Start ends the watches when ctx is done.
func (w *Watches) Start(ctx context.Context) error {
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for _, of := range w.byName {
		for _, cancel := range of {
			cancel()
		}
	}
	return nil
}
