package target

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
)

// watched are the kinds whose changes wake controllers. Secrets are not among them: watching is reading, and the provider
// may read none but its own.
func watched() []client.Object {
	return []client.Object{
		&corev1.Namespace{}, &corev1.ResourceQuota{}, &corev1.LimitRange{}, &corev1.ServiceAccount{},
		&networkingv1.NetworkPolicy{}, &networkingv1.Ingress{}, &rbacv1.RoleBinding{},
		&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{},
	}
}

// HTTPRoute is the kind as it is watched, metadata only, on clusters that serve it.
func HTTPRoute() client.Object {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"})
	return m
}

// newCache caches what is watched. Namespaces are all watched, since one that is not ours may have our environment's name.
func newCache(cfg *rest.Config, mapper meta.RESTMapper, k *kept) (cache.Cache, error) {
	environment, err := labels.NewRequirement(names.LabelEnvironment, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	ours := labels.NewSelector().Add(*environment)
	return cache.New(cfg, cache.Options{
		Scheme: scheme.Scheme, Mapper: mapper, DefaultTransform: slim, NewInformer: k.newInformer,
		DefaultLabelSelector: ours, ByObject: map[client.Object]cache.ByObject{&corev1.Namespace{}: {Label: labels.Everything()}},
		// A kind that may not be watched must not hold up the others for ever.
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: ptr.To(false),
	})
}

// slim drops what nobody here reads, before it is kept.
func slim(in any) (any, error) {
	obj, ok := in.(client.Object)
	if !ok {
		return in, nil
	}
	obj.SetManagedFields(nil)
	switch o := obj.(type) {
	case *corev1.Pod:
		o.Spec = corev1.PodSpec{NodeName: o.Spec.NodeName}
	case *appsv1.ReplicaSet:
		o.Spec.Template = corev1.PodTemplateSpec{}
	case *appsv1.Deployment:
		o.Spec.Template = corev1.PodTemplateSpec{}
	case *appsv1.StatefulSet:
		o.Spec.Template = corev1.PodTemplateSpec{}
	}
	return obj, nil
}

// watch runs the target's informers until ctx is done, or its server exceeds what it may make them hold.
func (t *Target) watch(ctx context.Context) {
	t.watching.Store(true)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-t.exceeded:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer closeIdle(t.anonymous.Transport)
	for _, obj := range watched() {
		t.inform(ctx, obj)
	}
	go t.inform(ctx, HTTPRoute())
	_ = t.informers.Start(ctx) // It returns when ctx is done.
}

// inform registers for one kind, again until it works: an informer is made only once the server was asked for the kind.
func (t *Target) inform(ctx context.Context, obj client.Object) {
	for ctx.Err() == nil {
		i, err := t.informers.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err == nil {
			if _, err = i.AddEventHandler(t.handler()); err == nil {
				return
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(breakerPause):
		}
	}
}

func (t *Target) handler() toolscache.ResourceEventHandler {
	tell := func(in any) {
		if obj, ok := in.(client.Object); ok {
			t.dispatch(t.Name, obj)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(in any) {
			t.kept.store(nil, in)
			tell(in)
		},
		UpdateFunc: func(before, after any) {
			t.kept.store(before, after)
			b, ok1 := before.(client.Object)
			a, ok2 := after.(client.Object)
			if ok1 && ok2 && b.GetResourceVersion() == a.GetResourceVersion() {
				return
			}
			tell(after)
		},
		DeleteFunc: func(in any) {
			if gone, ok := in.(toolscache.DeletedFinalStateUnknown); ok {
				in = gone.Obj
			}
			t.kept.store(in, nil)
			tell(in)
		},
	}
}
