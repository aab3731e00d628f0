package harness

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// Within is how long a condition may take. It is generous, since it is only reached when something is wrong.
const Within = 3 * time.Minute

// Eventually waits until check returns nil.
func Eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Within)
	defer cancel()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if last == nil || ctx.Err() == nil {
			last = err // Not that time was up while it was looked at.
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, Within, last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Create makes objects and removes them when the test is over.
func (s *Suite) Create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := s.Admin.Create(t.Context(), o); err != nil {
			t.Fatalf("cannot create %T %s: %v", o, o.GetName(), err)
		}
		t.Cleanup(func() {
			_ = s.Admin.Delete(context.Background(), o)
		})
	}
}

// Delete an object, which may be gone.
func (s *Suite) Delete(t *testing.T, o client.Object) {
	t.Helper()
	if err := s.Admin.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
		t.Fatalf("cannot delete %T %s: %v", o, o.GetName(), err)
	}
}

// WantGone waits until an object is gone.
func (s *Suite) WantGone(t *testing.T, o client.Object) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%T %s gone", o, o.GetName()), func(ctx context.Context) error {
		err := s.Admin.Get(ctx, client.ObjectKeyFromObject(o), o)
		if kerrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if e, ok := o.(*steading.Environment); ok {
			return fmt.Errorf("it is still there, %s", Describe(e))
		}
		return fmt.Errorf("it is still there, finalizers %v", o.GetFinalizers())
	})
}

// Reload reads an object anew. What is no longer there does not stay, as it would if it were read over what was read before.
func (s *Suite) Reload(ctx context.Context, o client.Object) error {
	key := client.ObjectKeyFromObject(o)
	reflect.ValueOf(o).Elem().SetZero()
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return s.Admin.Get(ctx, key, o)
}

// Get reads an object anew.
func Get[T client.Object](t *testing.T, s *Suite, o T) T {
	t.Helper()
	if err := s.Reload(t.Context(), o); err != nil {
		t.Fatalf("cannot get %T %s: %v", o, o.GetName(), err)
	}
	return o
}

// Change edits an object until the API server takes it. It sends what was edited and no more: a claim has fields that our
// types do not know, such as that which binds it to its composite, and to send it without would have it bound anew.
func Change[T client.Object](t *testing.T, s *Suite, o T, edit func(T)) {
	t.Helper()
	Eventually(t, "change "+o.GetName(), func(ctx context.Context) error {
		if err := s.Reload(ctx, o); err != nil {
			return err
		}
		before := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // A copy of the same type.
		edit(o)
		return s.Admin.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
}
