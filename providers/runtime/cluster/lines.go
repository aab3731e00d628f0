package cluster

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/steading-dev/steading/apis/names"
)

// lines are held for each Cluster to the endpoints that matter to it. They are added to the manager, which ends them.
type lines struct {
	pace pace

	mu        sync.Mutex
	ended     bool
	byCluster map[string]map[string]*line
	queue     workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newLines(p pace) *lines {
	return &lines{pace: p, byCluster: map[string]map[string]*line{}}
}

// hold lines to these endpoints for the Cluster, and to no others.
func (l *lines) hold(ctx context.Context, cluster string, endpoints ...Endpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	have := l.byCluster[cluster]
	want := make(map[string]*line, len(endpoints))
	for _, e := range endpoints {
		key := e.key()
		if want[key] != nil {
			continue
		}
		if h, ok := have[key]; ok {
			want[key] = h
			continue
		}
		want[key] = l.start(ctx, cluster, e)
	}
	for key, h := range have {
		if want[key] == nil {
			h.cancel()
		}
	}
	l.byCluster[cluster] = want
}

// add a line to the endpoint beside those that are held.
func (l *lines) add(ctx context.Context, cluster string, e Endpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.byCluster[cluster][e.key()] != nil {
		return
	}
	if l.byCluster[cluster] == nil {
		l.byCluster[cluster] = map[string]*line{}
	}
	l.byCluster[cluster][e.key()] = l.start(ctx, cluster, e)
}

// start a line, which outlives the reconcile that asks for it.
func (l *lines) start(ctx context.Context, cluster string, e Endpoint) *line {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n := &line{endpoint: e, pace: l.pace, cancel: cancel, wake: func() { l.wake(cluster) }}
	go n.run(ctx)
	return n
}

// to is the line that is held to the endpoint.
func (l *lines) to(cluster string, e Endpoint) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byCluster[cluster][e.key()]
}

// drop all lines of a Cluster.
func (l *lines) drop(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.byCluster[cluster] {
		n.cancel()
	}
	delete(l.byCluster, cluster)
}

// Start ends the lines when ctx is done.
func (l *lines) Start(ctx context.Context) error {
	<-ctx.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for _, of := range l.byCluster {
		for _, n := range of {
			n.cancel()
		}
	}
	return nil
}

// source wakes the controller of Clusters.
func (l *lines) source() source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.queue = q
		return nil
	})
}

func (l *lines) wake(cluster string) {
	l.mu.Lock()
	q := l.queue
	l.mu.Unlock()
	if q != nil {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: names.SystemNamespace, Name: cluster}})
	}
}
