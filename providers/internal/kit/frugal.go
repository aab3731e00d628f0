package kit

import (
	"context"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// A frugal client does not send an update that changes nothing. Crossplane's reconcilers end every pass with one, which the API
// server takes as much time over as over any other.
//
// It looks at the object that a reconcile began with: what was read first in it. That is left out of a request only while it is
// what this client wrote last. What comes from a cache that has not caught up yet is sent, and refused as a conflict: the pass is
// repeated, as it has to be, since it judged by what is no longer true.
type frugal struct {
	client.Client
	mu sync.Mutex
	// written is the resource version of what was written last, by object.
	written map[client.ObjectKey]string
}

// frugalManager gives a frugal client to the reconciler of one kind that is made with it. The reconciler has to be wrapped in
// [WithAfter].
type frugalManager struct {
	manager.Manager
	client *frugal
}

func newFrugalManager(mgr manager.Manager) frugalManager {
	return frugalManager{Manager: mgr, client: &frugal{Client: mgr.GetClient(), written: map[client.ObjectKey]string{}}}
}

// GetClient returns the frugal client.
func (m frugalManager) GetClient() client.Client { return m.client }

// Get remembers what a pass begins with.
func (f *frugal) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := f.Client.Get(ctx, key, obj, opts...)
	if kerrors.IsNotFound(err) {
		f.forget(key)
	}
	l := lookOf(ctx)
	if err != nil || l == nil || l.began != nil {
		return err
	}
	l.began, _ = obj.DeepCopyObject().(client.Object)
	return nil
}

// Update the object, unless it is what was read.
func (f *frugal) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if f.unchanged(ctx, obj) {
		return nil
	}
	return f.wrote(obj, f.Client.Update(ctx, obj, opts...))
}

// Status returns a writer that is as frugal.
func (f *frugal) Status() client.SubResourceWriter { return frugalStatus{f.Client.Status(), f} }

type frugalStatus struct {
	client.SubResourceWriter
	f *frugal
}

// Update the object's status, unless the object is what was read.
func (s frugalStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if s.f.unchanged(ctx, obj) {
		return nil
	}
	return s.f.wrote(obj, s.SubResourceWriter.Update(ctx, obj, opts...))
}

// unchanged reports whether the object is what the pass began with, and that what was written last.
func (f *frugal) unchanged(ctx context.Context, obj client.Object) bool {
	l := lookOf(ctx)
	if l == nil || l.began == nil || reflect.TypeOf(l.began) != reflect.TypeOf(obj) {
		return false
	}
	f.mu.Lock()
	written := f.written[client.ObjectKeyFromObject(obj)]
	f.mu.Unlock()
	return written == l.began.GetResourceVersion() && equality.Semantic.DeepEqual(l.began, obj)
}

// wrote notes the version of what was written.
func (f *frugal) wrote(obj client.Object, err error) error {
	if err == nil {
		f.mu.Lock()
		f.written[client.ObjectKeyFromObject(obj)] = obj.GetResourceVersion()
		f.mu.Unlock()
	}
	return err
}

func (f *frugal) forget(key client.ObjectKey) {
	f.mu.Lock()
	delete(f.written, key)
	f.mu.Unlock()
}
