package cluster

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

var secretResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// A subject is one object of a tenant's that a Cluster depends on.
type subject struct {
	resource schema.GroupVersionResource
	key      client.ObjectKey
}

// informed wakes a Cluster when what its claim refers to changes. Each object is watched by its own name, metadata only: who
// may watch a namespace's Secrets would hold all of them.
type informed struct {
	client metadata.Interface
	wake   func(cluster string)

	mu        sync.Mutex
	ended     bool
	byCluster map[string]map[subject]context.CancelFunc
}

func newInformed(c metadata.Interface, wake func(cluster string)) *informed {
	return &informed{client: c, wake: wake, byCluster: map[string]map[subject]context.CancelFunc{}}
}

// of has the Cluster informed of these subjects, and of no others.
func (i *informed) of(ctx context.Context, cluster string, subjects ...subject) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return
	}
	have := i.byCluster[cluster]
	want := make(map[subject]context.CancelFunc, len(subjects))
	for _, s := range subjects {
		if cancel, ok := have[s]; ok {
			want[s] = cancel
			continue
		}
		want[s] = i.start(ctx, cluster, s)
	}
	for s, cancel := range have {
		if want[s] == nil {
			cancel()
		}
	}
	i.byCluster[cluster] = want
	if len(want) == 0 {
		delete(i.byCluster, cluster)
	}
}

// start a watch, which outlives the reconcile that asks for it.
func (i *informed) start(ctx context.Context, cluster string, s subject) context.CancelFunc {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	only := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.key.Name).String()
	}
	informer := metadatainformer.NewFilteredMetadataInformer(i.client, s.resource, s.key.Namespace, 0, cache.Indexers{}, only).Informer()
	wake := func() { i.wake(cluster) }
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
func (i *informed) Start(ctx context.Context) error {
	<-ctx.Done()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	for _, of := range i.byCluster {
		for _, cancel := range of {
			cancel()
		}
	}
	return nil
}
