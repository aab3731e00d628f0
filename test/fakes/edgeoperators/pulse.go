package edgeoperators

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// beat is how often an operator looks even if nothing happened.
const beat = time.Second

// An operator looks at the objects of its kinds whenever one of them changes.
type operator struct {
	client.WithWatch
	kinds []schema.GroupVersionKind
	step  func(ctx context.Context) error

	wake chan struct{}

	mu   sync.Mutex
	gone bool
}

func newOperator(cfg *rest.Config, kinds ...schema.GroupVersionKind) (*operator, error) {
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme.Scheme})
	return &operator{WithWatch: c, kinds: kinds, wake: make(chan struct{}, 1)}, err
}

// Gone has the operator do nothing, as when it does not run, until it is called with false.
func (o *operator) Gone(gone bool) {
	o.mu.Lock()
	o.gone = gone
	o.mu.Unlock()
	o.nudge()
}

func (o *operator) isGone() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gone
}

func (o *operator) nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run until ctx is done. Kinds that are not served yet are looked for again; a step that fails is taken again.
func (o *operator) run(ctx context.Context) {
	for _, k := range o.kinds {
		go o.watch(ctx, k)
	}
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		if !o.isGone() {
			if err := o.step(ctx); err != nil {
				o.retry(ctx)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		case <-t.C:
		}
	}
}

// retry soon: most failures are of writes that lost against another.
func (o *operator) retry(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(beat / 20):
		o.nudge()
	}
}

func (o *operator) watch(ctx context.Context, kind schema.GroupVersionKind) {
	for ctx.Err() == nil {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		w, err := o.Watch(ctx, l)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(beat):
			}
			continue
		}
		for range w.ResultChan() {
			o.nudge()
		}
	}
}

// all objects of a kind, in a namespace or in all. A kind that is not served has none.
func (o *operator) all(ctx context.Context, kind schema.GroupVersionKind, namespace string) []unstructured.Unstructured {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := o.List(ctx, l, client.InNamespace(namespace)); err != nil {
		return nil
	}
	return l.Items
}
