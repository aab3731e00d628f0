package target

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// objectCost is what a small object takes above its size on the wire, in bytes.
const objectCost = 1 << 10

// kept is how much is held of what is watched on the cluster of a Context.
type kept struct {
	told func(*ExcessError)
	// stored by the informers, and gathered by those that have not read everything yet.
	stored, gathered atomic.Int64
	// turn is had by the informer that lists, so that their answers are not read all at once.
	turn chan struct{}
}

func newKept(told func(*ExcessError)) *kept { return &kept{told: told, turn: make(chan struct{}, 1)} }

// store notes that an object was added, changed or deleted. Nil is none.
func (k *kept) store(before, after any) {
	if k != nil {
		_ = k.note(&k.stored, weight(after)-weight(before)) // It is told.
	}
}

// note so much more, and report whether there is too much.
func (k *kept) note(of *atomic.Int64, more int64) *ExcessError {
	if of.Add(more) <= mostKept {
		return nil
	}
	over := excess("has namespaces and objects with an environment's label that", mostKept)
	k.told(over)
	return over
}

// weight of an object in memory, roughly.
func weight(obj any) int64 {
	switch o := obj.(type) {
	case nil:
		return 0
	case interface{ Size() int }: // on the wire
		return objectCost + int64(o.Size())
	}
	return objectCost
}

// newInformer makes an informer that notes what it gathers. What it stores is noted by the handler.
func (k *kept) newInformer(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	if k != nil {
		g := &gathering{kept: k, from: toolscache.ToListerWatcherWithContext(lw)}
		lw = &toolscache.ListWatch{ListWithContextFunc: g.list, WatchFuncWithContext: g.watch}
	}
	return toolscache.NewSharedIndexInformer(lw, obj, resync, indexers)
}

// gathering is what one informer has of a list until it is complete: pages, or the first events of a watch. Neither need ever end.
type gathering struct {
	*kept
	from toolscache.ListerWatcherWithContext
	sum  atomic.Int64
}

// list a page.
func (g *gathering) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	}
	if o.Continue == "" {
		g.done()
	}
	if o.ResourceVersion == "0" {
		o.ResourceVersion = "" // With 0, a server that keeps lists in memory answers with all of it in one page.
	}
	page, err := g.from.ListWithContext(ctx, o)
	if err != nil {
		return nil, err //nolint:wrapcheck // The informer asks what kind of error it is.
	}
	if err := meta.EachListItem(page, func(obj runtime.Object) error { return g.gather(obj) }); err != nil {
		return nil, err
	}
	if l, err := meta.ListAccessor(page); err == nil && l.GetContinue() == "" {
		g.done()
	}
	return page, nil
}

// watch, and gather what is there to begin with if the server is asked for that.
func (g *gathering) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	g.done()
	w, err := g.from.WatchWithContext(ctx, o)
	if err != nil || o.SendInitialEvents == nil || !*o.SendInitialEvents {
		return w, err //nolint:wrapcheck // The informer asks what kind of error it is.
	}
	complete := false
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		switch {
		case complete:
		case e.Type == watch.Bookmark:
			if m, err := meta.Accessor(e.Object); err == nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
				complete = true
				g.done()
			}
		default:
			return e, g.gather(e.Object) == nil
		}
		return e, true
	}), nil
}

// gather an object.
func (g *gathering) gather(obj runtime.Object) error {
	w := weight(obj)
	g.sum.Add(w)
	if over := g.note(&g.gathered, w); over != nil {
		return over
	}
	return nil
}

// done with what was gathered.
func (g *gathering) done() { g.gathered.Add(-g.sum.Swap(0)) }
