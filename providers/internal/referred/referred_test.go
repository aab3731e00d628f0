package referred

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

var (
	id    = v1alpha1.Identity{Tenant: "acme", Environment: "dev", UID: "uid-1"}
	claim = kit.EnvironmentClaim(v1alpha1.ClaimReference{Namespace: "tenant-acme", Name: "dev"})
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWatches: who refers to an object is woken when it is there, changes and goes, and nobody else is.
func TestWatches(t *testing.T) {
	s := metadatafake.NewTestScheme()
	must(t, metav1.AddMetaToScheme(s))
	c := metadatafake.NewSimpleMetadataClient(s)
	woken := make(chan string, 16)
	w := NewWatches(c, func(name string) { woken <- name })
	// The fake tells a watch nothing of what happened between its list and its beginning: what is done is done again until it is
	// heard of.
	wake := func(what string, do func(version int)) {
		t.Helper()
		for version := 1; ; version++ {
			do(version)
			select {
			case name := <-woken:
				if name != "acme-dev.db" {
					t.Fatalf("%s: woke %s", what, name)
				}
				return
			case <-time.After(100 * time.Millisecond):
				if version == 600 {
					t.Fatalf("%s: nobody was woken", what)
				}
			}
		}
	}
	secrets := c.Resource(Secrets).Namespace("tenant-acme")
	fakeSecrets, ok := secrets.(metadatafake.MetadataClient)
	if !ok {
		t.Fatalf("%T cannot make objects", secrets)
	}
	object := func(version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "s", ResourceVersion: version},
		}
	}
	_, err := fakeSecrets.CreateFake(object("1"), metav1.CreateOptions{})
	must(t, err)
	w.Of(t.Context(), "acme-dev.db", Subject{Resource: Secrets, Key: client.ObjectKey{Namespace: "tenant-acme", Name: "s"}})
	wake("there", func(int) {})
	wake("changed", func(version int) {
		_, err = fakeSecrets.UpdateFake(object(strconv.Itoa(1+version)), metav1.UpdateOptions{})
		must(t, err)
	})
	if !slices.ContainsFunc(verbs(c), func(v string) bool { return v == "list" }) {
		t.Error("what is watched was not listed first")
	}
	w.Of(t.Context(), "acme-dev.db")
	if !w.Empty() {
		t.Error("it is watched still")
	}
}

func verbs(c *metadatafake.FakeMetadataClient) []string {
	var all []string
	for _, a := range c.Actions() {
		all = append(all, a.GetVerb())
	}
	return all
}

func newRights(t *testing.T, f interceptor.Funcs, objs ...client.Object) Rights {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, steading.AddToScheme, metav1.AddMetaToScheme} {
		must(t, add(s))
	}
	objs = append(objs, &steading.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "dev"}})
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).Build(), f)
	return Rights{Provider: "provider-runtime", Client: c, Reader: c, Uncached: c, Claims: kit.NewClaimReporter(c, c, record.NewFakeRecorder(1))}
}

func right() *rbacv1.RoleBinding {
	return Right("provider-runtime", "tenant-acme", "steading-values-dev.db", "steading:component-values-reader", id)
}

func TestRightIsGivenOnceAndTakenBack(t *testing.T) {
	applied, forbidden := 0, 2
	r := newRights(t, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			applied++
			return c.Apply(ctx, obj, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, secret := obj.(*corev1.Secret); secret && forbidden > 0 {
				forbidden--
				return kerrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, errors.New("not yet"))
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	for range 2 {
		must(t, r.Give(t.Context(), right(), id, claim))
	}
	if applied != 1 || forbidden != 0 {
		t.Errorf("it was applied %d times, and %d refusals were not waited for", applied, forbidden)
	}
	have := &rbacv1.RoleBinding{}
	must(t, r.Reader.Get(t.Context(), client.ObjectKeyFromObject(right()), have))
	if have.RoleRef.Name != "steading:component-values-reader" || !kit.Stamped(have, id) {
		t.Errorf("have %+v", have)
	}
	for range 2 {
		must(t, r.Take(t.Context(), right()))
	}
	if err := r.Reader.Get(t.Context(), client.ObjectKeyFromObject(right()), have); !kerrors.IsNotFound(err) {
		t.Errorf("it is there still: %v", err)
	}
}

func TestAnothersRightIsLeftAlone(t *testing.T) {
	theirs := right()
	theirs.Labels, theirs.Annotations = nil, nil
	r := newRights(t, interceptor.Funcs{}, theirs)
	if err := r.Give(t.Context(), right(), id, claim); err == nil || !strings.Contains(err.Error(), "was not made by Steading") {
		t.Errorf("error %v", err)
	}
}
