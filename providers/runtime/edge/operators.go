package edge

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// definitions of the operators' kinds, by name.
var definitions = map[string]schema.GroupVersionKind{
	"dnsendpoints.externaldns.k8s.io":     dnsEndpointKind,
	"certificates.cert-manager.io":        certificateKind,
	"certificaterequests.cert-manager.io": requestKind,
	"challenges.acme.cert-manager.io":     challengeKind,
}

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// unserved is how long to wait for a kind to be served whose definition is new.
const unserved = time.Second

// operators watch for the kinds of the DNS and certificate operators to come and go, and while they are there for what
// happens to their objects in steading-edge. A control plane without them is not an error, and needs no restart when it gets
// them.
type operators struct {
	log logging.Logger
	// definitions of kinds are read here, metadata only.
	definitions cache.Cache
	// objects in steading-edge are watched here.
	objects cache.Cache

	mu          sync.Mutex
	watched     map[schema.GroupVersionKind]context.CancelFunc
	subscribers []func(obj client.Object)
}

// newOperators adds the watches to the manager.
func newOperators(mgr manager.Manager, o kit.Options) (*operators, error) {
	mine := labels.SelectorFromSet(labels.Set{names.LabelManagedBy: names.ManagedBy})
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(secretKind)
	objects, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme:            mgr.GetScheme(),
		Mapper:            mgr.GetRESTMapper(),
		DefaultNamespaces: map[string]cache.Config{names.EdgeNamespace: {}},
		ByObject:          map[client.Object]cache.ByObject{secret: {Label: mine}},
		DefaultTransform:  cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, errors.Wrap(err, "cannot make the cache of namespace "+names.EdgeNamespace)
	}
	ops := &operators{
		log: o.Log.WithValues("controller", "operators"), definitions: mgr.GetCache(), objects: objects,
		watched: map[schema.GroupVersionKind]context.CancelFunc{},
	}
	return ops, errors.Wrap(mgr.Add(ops), "cannot add the watch of DNS and certificate operators")
}

// Installed reports whether an operator's kind is defined on the control plane.
func (o *operators) Installed(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	for name, k := range definitions {
		if k != kind {
			continue
		}
		d := newMetadata(definitionKind)
		err := o.definitions.Get(ctx, client.ObjectKey{Name: name}, d)
		if kerrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && d.GetDeletionTimestamp() == nil, errors.Wrapf(err, "cannot look for the kind %s", kind.Kind)
	}
	return false, nil
}

func newMetadata(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(kind)
	return m
}

// NeedLeaderElection is true: who does not reconcile need not watch.
func (o *operators) NeedLeaderElection() bool { return true }

// Start watches until ctx is done.
func (o *operators) Start(ctx context.Context) error {
	informer, err := o.definitions.GetInformer(ctx, newMetadata(definitionKind), cache.BlockUntilSynced(false))
	if err != nil {
		return errors.Wrap(err, "cannot watch for the kinds of DNS and certificate operators")
	}
	_, err = informer.AddEventHandler(telling(func(obj client.Object, gone bool) {
		if kind, ok := definitions[obj.GetName()]; ok {
			o.defined(ctx, kind, !gone && obj.GetDeletionTimestamp() == nil)
			o.notify(obj)
		}
	}))
	if err != nil {
		return errors.Wrap(err, "cannot watch for the kinds of DNS and certificate operators")
	}
	go o.watch(ctx, newMetadata(secretKind))
	return o.objects.Start(ctx)
}

// defined starts or ends the watch of a kind's objects.
func (o *operators) defined(ctx context.Context, kind schema.GroupVersionKind, there bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	cancel, watched := o.watched[kind]
	switch {
	case there && !watched:
		ctx, cancel := context.WithCancel(ctx)
		o.watched[kind] = cancel
		go o.watch(ctx, observable(kind))
	case !there && watched:
		cancel()
		delete(o.watched, kind)
	}
}

// observable is what is watched of a kind: its metadata, which say that something changed. Only of challenges more is
// needed, since they name their domain nowhere else.
func observable(kind schema.GroupVersionKind) client.Object {
	if kind == challengeKind {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		return u
	}
	return newMetadata(kind)
}

// watch the objects of a kind until ctx is done. A kind is served only some time after it was defined.
func (o *operators) watch(ctx context.Context, obj client.Object) {
	for ctx.Err() == nil {
		informer, err := o.objects.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(telling(func(obj client.Object, _ bool) { o.notify(obj) }))
		}
		if err == nil {
			break
		}
		if !apimeta.IsNoMatchError(err) {
			o.log.Info("Cannot watch an operator's objects", "kind", obj.GetObjectKind().GroupVersionKind().Kind, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(unserved):
		}
	}
	<-ctx.Done()
	_ = o.objects.RemoveInformer(context.WithoutCancel(ctx), obj) // There is none, at worst.
}

// Subscribe returns a source that wakes what mapped returns whenever something happens to an operator's kind, or to an
// object of one in steading-edge.
func (o *operators) Subscribe(mapped func(ctx context.Context, obj client.Object) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.subscribers = append(o.subscribers, func(obj client.Object) {
			for _, r := range mapped(ctx, obj) {
				queue.Add(r)
			}
		})
		return nil
	})
}

func (o *operators) notify(obj client.Object) {
	o.mu.Lock()
	subscribers := o.subscribers
	o.mu.Unlock()
	for _, s := range subscribers {
		s(obj)
	}
}

// environmentOf is the environment, as namespace and name of its Edge, that an object in steading-edge belongs to; false for
// a definition, which concerns all.
func environmentOf(obj client.Object) (string, bool) {
	if _, ok := definitions[obj.GetName()]; ok && obj.GetNamespace() == "" {
		return "", false
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		domain, _, _ := unstructured.NestedString(u.Object, "spec", "dnsName")
		first, _, _ := strings.Cut(domain, ".")
		return first, true
	}
	l := obj.GetLabels()
	return names.Environment(l[names.LabelTenant], l[names.LabelEnvironment]), true
}

// telling tells of every event, and whether the object is gone.
func telling(tell func(obj client.Object, gone bool)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(in any) {
			if obj, ok := in.(client.Object); ok {
				tell(obj, false)
			}
		},
		UpdateFunc: func(before, after any) {
			b, ok1 := before.(client.Object)
			a, ok2 := after.(client.Object)
			if ok1 && ok2 && a.GetResourceVersion() != b.GetResourceVersion() {
				tell(a, false)
			}
		},
		DeleteFunc: func(in any) {
			if gone, ok := in.(toolscache.DeletedFinalStateUnknown); ok {
				in = gone.Obj
			}
			if obj, ok := in.(client.Object); ok {
				tell(obj, true)
			}
		},
	}
}
