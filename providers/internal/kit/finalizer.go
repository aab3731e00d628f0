package kit

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

// keepStatus adds a finalizer without losing what Observe said in status. Crossplane's own takes over the API server's answer,
// whose status is the old one, so that what was seen of a new resource would be told only when it is looked at again.
type keepStatus struct{ resource.Finalizer }

// AddFinalizer to the object.
func (f keepStatus) AddFinalizer(ctx context.Context, obj resource.Object) error {
	written, ok := obj.DeepCopyObject().(resource.Object)
	if !ok {
		return errors.Errorf("%T is not an object", obj)
	}
	if err := f.Finalizer.AddFinalizer(ctx, written); err != nil {
		return err
	}
	obj.SetFinalizers(written.GetFinalizers())
	obj.SetResourceVersion(written.GetResourceVersion())
	return nil
}
