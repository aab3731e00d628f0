package kit

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

// A pass reads a Boundary, from a cache or from the server, says something of it, and updates its status.
func pass(t *testing.T, f *frugal, from client.Reader, key client.ObjectKey, say func(*v1alpha1.Boundary)) error {
	t.Helper()
	f.Client = reads{f.Client, from}
	defer func() { f.Client = f.Client.(reads).Client }() //nolint:forcetypeassert // It was just set.
	_, err := WithAfter(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		b := &v1alpha1.Boundary{}
		if err := f.Get(ctx, key, b); err != nil {
			return reconcile.Result{}, err
		}
		say(b)
		return reconcile.Result{}, f.Status().Update(ctx, b)
	})).Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	return err
}

type reads struct {
	client.Client
	from client.Reader
}

func (r reads) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.from.Get(ctx, key, obj, opts...)
}

func TestFrugal(t *testing.T) {
	sent := 0
	count := interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
		sent++
		return c.SubResource(sub).Update(ctx, obj, opts...)
	}}
	server := kube(t, count, labelled(&v1alpha1.Boundary{}, "acme-dev", "dev"))
	f := &frugal{Client: server, written: map[client.ObjectKey]string{}}
	key := client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-dev"}
	ready := func(b *v1alpha1.Boundary) { MarkReady(b) }
	steps := []struct {
		reason string
		say    func(*v1alpha1.Boundary)
		want   int
	}{
		{"what is new is sent", ready, 1},
		{"what is not is not", ready, 1},
		{"not even once more", ready, 1},
		{"until something changes", func(b *v1alpha1.Boundary) { MarkNotReady(b, "Because", "it is broken") }, 2},
	}
	for _, s := range steps {
		if err := pass(t, f, server, key, s.say); err != nil {
			t.Fatal(err)
		}
		if sent != s.want {
			t.Errorf("%s: have %d requests, want %d", s.reason, sent, s.want)
		}
	}
}

// TestFrugalDoesNotTrustACacheThatLags: a pass that sees what was true before our last write, and finds it true, has to be
// refused, or what was written last would stand although it is not.
func TestFrugalDoesNotTrustACacheThatLags(t *testing.T) {
	server := kube(t, interceptor.Funcs{}, labelled(&v1alpha1.Boundary{}, "acme-dev", "dev"))
	f := &frugal{Client: server, written: map[client.ObjectKey]string{}}
	key := client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-dev"}
	ready := func(b *v1alpha1.Boundary) { MarkReady(b) }
	if err := pass(t, f, server, key, ready); err != nil {
		t.Fatal(err)
	}
	was := &v1alpha1.Boundary{}
	if err := server.Get(t.Context(), key, was); err != nil {
		t.Fatal(err)
	}
	was.SetResourceVersion("")
	lagging := kube(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, k, o, opts...)
		o.SetResourceVersion("1000") // What the server gave the first write.
		return err
	}}, was)
	if err := pass(t, f, server, key, func(b *v1alpha1.Boundary) { MarkNotReady(b, "Because", "it is broken") }); err != nil {
		t.Fatal(err)
	}
	if err := pass(t, f, lagging, key, ready); !kerrors.IsConflict(err) {
		t.Errorf("have %v, want a conflict", err)
	}
	now := &v1alpha1.Boundary{}
	if err := server.Get(t.Context(), key, now); err != nil {
		t.Fatal(err)
	}
	if have := now.GetCondition("Ready").Status; have != corev1.ConditionFalse {
		t.Errorf("the pass that judged by an old state wrote %s", have)
	}
}
