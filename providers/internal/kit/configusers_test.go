package kit

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

// byDefault is the config that managed resources name unless they say otherwise.
func byDefault() *xpv2.ProviderConfigReference {
	return &xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: names.DefaultProviderConfig}
}

// using a config.
func using[T resource.ModernManaged](mg T, name string, ref *xpv2.ProviderConfigReference) T {
	mg.SetNamespace(names.SystemNamespace)
	mg.SetName(name)
	mg.SetFinalizers([]string{"example.com/hold"})
	mg.SetProviderConfigReference(ref)
	return mg
}

// TestAConfigStaysUntilItsUsersAreGone: they need what it allows, such as the address of a cluster, until they are, and the
// garbage collector takes their usages first.
func TestAConfigStaysUntilItsUsersAreGone(t *testing.T) {
	config := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig}}
	other := &xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "other"}
	namespaced := &xpv2.ProviderConfigReference{Kind: v1alpha1.ProviderConfigKind, Name: names.DefaultProviderConfig}
	release := using(&v1alpha1.Release{}, "acme-dev", byDefault())
	cluster := using(&v1alpha1.Cluster{}, "acme-edge", byDefault())
	updates := 0
	c := kube(t, interceptor.Funcs{SubResourceUpdate: counted(&updates)}, config, release, cluster,
		using(&v1alpha1.Boundary{}, "acme-other", other), using(&v1alpha1.Boundary{}, "acme-namespaced", namespaced), using(&v1alpha1.Boundary{}, "acme-none", nil))
	mgr, events := &fake.Manager{Client: c, Scheme: c.Scheme()}, &recorded{}
	o := Options{Log: logging.NewNopLogger(), Record: events}
	r := heldConfig(mgr, o, newConfigKeeper(mgr, o, v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterProviderConfigKind)))
	now := func() (*v1alpha1.ClusterProviderConfig, error) {
		t.Helper()
		for range 2 {
			must(r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(config)}))(t)
		}
		read := &v1alpha1.ClusterProviderConfig{}
		return read, c.Get(t.Context(), client.ObjectKeyFromObject(config), read)
	}
	kept := func(users int64, message string) {
		t.Helper()
		config, err := now()
		if err != nil {
			t.Fatalf("it is gone: %v", err)
		}
		have := config.GetCondition("Terminating")
		if have.Reason != "InUse" || !strings.Contains(have.Message, message) || config.Status.Users != users {
			t.Errorf("%d users, condition %+v", config.Status.Users, have)
		}
	}
	deleted := func(o client.Object) {
		t.Helper()
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}

	if config, err := now(); err != nil || len(config.Finalizers) != 1 || len(config.Status.Conditions) != 0 {
		t.Fatalf("nobody deletes it: %+v, %v", config, err)
	}
	for _, o := range []client.Object{config, release, cluster} {
		deleted(o)
	}
	updates = 0
	kept(2, "2, such as Cluster steading-system/acme-edge")
	kept(2, "2, such as Cluster steading-system/acme-edge")
	if updates != 1 {
		t.Errorf("its status is written %d times, and has one thing to say", updates)
	}
	gone(t, c, cluster)
	kept(1, "1, such as Release steading-system/acme-dev")
	if len(*events) != 1 || !strings.HasPrefix((*events)[0], "InUse ") {
		t.Errorf("events %q, want one", *events)
	}
	gone(t, c, release)
	if config, err := now(); !kerrors.IsNotFound(err) {
		t.Errorf("nobody uses it any more: %+v, %v", config, err)
	}
}

// TestAConfigOfANamespaceStaysForItsOwn users only, that of another namespace and the cluster's notwithstanding.
func TestAConfigOfANamespaceStaysForItsOwn(t *testing.T) {
	own := using(&v1alpha1.Edge{}, "own", &xpv2.ProviderConfigReference{Name: names.DefaultProviderConfig})
	c := kube(t, interceptor.Funcs{}, own, using(&v1alpha1.Edge{}, "cluster", byDefault()))
	k := configKeeper{of: v1alpha1.GroupVersion.WithKind(v1alpha1.ProviderConfigKind), client: c}
	for namespace, want := range map[string][]string{names.SystemNamespace: {"Edge steading-system/own"}, "elsewhere": nil} {
		req := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: names.DefaultProviderConfig}}
		if have, err := k.users(t.Context(), req); err != nil || !cmp.Equal(want, have) {
			t.Errorf("users in %s: %v, %v, want %v", namespace, have, err, want)
		}
	}
}

// TestConfigsWakeWithTheirUsers only when those come, go or name another.
func TestConfigsWakeWithTheirUsers(t *testing.T) {
	k := configKeeper{of: v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterProviderConfigKind)}
	mg := using(&v1alpha1.Release{}, "acme-dev", byDefault())
	changed := using(&v1alpha1.Release{}, "acme-dev", byDefault())
	changed.Generation++
	moved := using(&v1alpha1.Release{}, "acme-dev", &xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "other"})
	p, h := k.changesOver(), k.woken()
	for name, tc := range map[string]struct {
		passes bool
		send   func(q laterQueue)
		want   []string
	}{
		"Gone":    {p.Delete(event.DeleteEvent{Object: mg}), func(q laterQueue) { h.Delete(t.Context(), event.DeleteEvent{Object: mg}, q) }, []string{"default"}},
		"Come":    {p.Create(event.CreateEvent{Object: mg}), func(q laterQueue) { h.Create(t.Context(), event.CreateEvent{Object: mg}, q) }, []string{"default"}},
		"Changed": {p.Update(event.UpdateEvent{ObjectOld: mg, ObjectNew: changed}), nil, nil},
		"Moved": {
			p.Update(event.UpdateEvent{ObjectOld: mg, ObjectNew: moved}),
			func(q laterQueue) { h.Update(t.Context(), event.UpdateEvent{ObjectOld: mg, ObjectNew: moved}, q) },
			[]string{"default", "other"},
		},
	} {
		q := &added{}
		if tc.passes {
			tc.send(q)
		}
		if slices.Sort(q.names); !slices.Equal(tc.want, q.names) {
			t.Errorf("%s wakes %v, want %v", name, q.names, tc.want)
		}
	}
}

// TestConfiguredKinds of both providers are all that name a config.
func TestConfiguredKinds(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, forgejov1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	for gv, want := range map[schema.GroupVersion][]string{
		v1alpha1.GroupVersion:  {v1alpha1.BoundaryKind, v1alpha1.ClusterKind, v1alpha1.EdgeKind, v1alpha1.HomeKind, v1alpha1.PlacementKind, v1alpha1.ReleaseKind},
		forgejov1.GroupVersion: {forgejov1.RunnerInstanceKind},
	} {
		var have []string
		for _, k := range configuredKinds(s, gv) {
			have = append(have, k.Kind)
		}
		if !cmp.Equal(want, have) {
			t.Errorf("kinds of %s: %v, want %v", gv, have, want)
		}
	}
}

// counted are the updates of a status.
func counted(n *int) func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
	return func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
		*n++
		return c.SubResource(sub).Update(ctx, obj, opts...)
	}
}

// gone is an object that is being deleted, once nothing holds it.
func gone(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	o.SetFinalizers(nil)
	if err := c.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// added are the names of what is added to a queue after a while.
type added struct {
	laterQueue
	names []string
}

func (a *added) AddAfter(r reconcile.Request, _ time.Duration) { a.names = append(a.names, r.Name) }
