package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Children are the Jobs of a namespace, as a watch tells of them.
type children struct {
	mu    sync.Mutex
	seen  []time.Time // When each was first seen, in order.
	known map[types.UID]bool
	runs  map[types.UID]bool // Those that are not finished.
	most  int                // That were not finished at once.
}

func watchChildren(ctx context.Context, cfg *rest.Config, namespace string) (*children, error) {
	cs, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	c := &children{known: map[types.UID]bool{}, runs: map[types.UID]bool{}}
	factory := informers.NewSharedInformerFactoryWithOptions(cs, 0, informers.WithNamespace(namespace))
	_, err = factory.Batch().V1().Jobs().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.see,
		UpdateFunc: func(_, now any) { c.see(now) },
		DeleteFunc: c.gone,
	})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("cannot watch %s: %w", kind, ctx.Err())
		}
	}
	return c, nil
}

func (c *children) see(o any) {
	j, ok := o.(*batchv1.Job)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known[j.UID] {
		c.known[j.UID] = true
		c.seen = append(c.seen, time.Now())
	}
	if finished(j) {
		delete(c.runs, j.UID)
		return
	}
	c.runs[j.UID] = true
	c.most = max(c.most, len(c.runs))
}

func (c *children) gone(o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if j, ok := o.(*batchv1.Job); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.runs, j.UID)
	}
}

func finished(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// count of those that were ever seen.
func (c *children) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

// since the first n: when each was first seen.
func (c *children) since(n int) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seen[n:])
}

// unfinished ones that there are.
func (c *children) unfinished() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.runs)
}

// peak of those that were not finished at once, since it was reset.
func (c *children) peak() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

func (c *children) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = len(c.runs)
}
