package kit

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

func labelled(o client.Object, name, environment string) client.Object {
	o.SetNamespace(names.SystemNamespace)
	o.SetName(name)
	o.SetLabels(map[string]string{names.LabelTenant: "acme", names.LabelEnvironment: environment, names.LabelComposite: "xr-" + environment})
	return o
}

var kinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind(v1alpha1.ReleaseKind),
	v1alpha1.GroupVersion.WithKind("Edge"),
	v1alpha1.GroupVersion.WithKind(v1alpha1.BoundaryKind),
}

// noEdge is an API server that does not serve the kind Edge.
var noEdge = interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
	if l.GetObjectKind().GroupVersionKind().Kind == "EdgeList" {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Edge"}}
	}
	return c.List(ctx, l, opts...)
}}

func TestStanding(t *testing.T) {
	elsewhere := labelled(&v1alpha1.Release{}, "elsewhere", "dev")
	elsewhere.SetNamespace("default")
	y := Youngers{Kinds: kinds, Reader: kube(t, noEdge, elsewhere,
		labelled(&v1alpha1.Release{}, "acme-dev", "dev"), labelled(&v1alpha1.Boundary{}, "acme-dev", "dev"),
		labelled(&v1alpha1.Boundary{}, "acme-web", "web"), labelled(&v1alpha1.Placement{}, "acme-dev", "dev"))}
	ctx := context.Background()

	have, err := y.Standing(ctx, names.LabelComposite, "xr-dev")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Standing{"Boundary acme-dev", "Release acme-dev"}, have); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}

	edge := labelled(&v1alpha1.Cluster{}, "acme-edge", "dev")
	edge.SetLabels(map[string]string{names.LabelTenant: "acme", names.LabelContext: "edge"})
	owners := Youngers{Kinds: append([]schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterKind)}, kinds...), ByClaim: true,
		Reader: kube(t, noEdge, edge, labelled(&v1alpha1.Release{}, "acme-dev", "dev"), labelled(&v1alpha1.Boundary{}, "acme-dev", "dev"))}
	if have, err = owners.Standing(ctx, names.LabelTenant, "acme"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Standing{"Context edge", "Environment dev"}, have); diff != "" {
		t.Errorf("by claim: -want, +have:\n%s", diff)
	}

	by, err := y.StandingBy(ctx, names.LabelTenant, "acme", names.LabelComposite)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Standing{"xr-dev": {"Boundary acme-dev", "Release acme-dev"}, "xr-web": {"Boundary acme-web"}}
	if diff := cmp.Diff(want, by); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
}

// TestStandingBefore: an elder that is deleted alone does not wait for what its composite has made anew since.
func TestStandingBefore(t *testing.T) {
	at := func(second int) metav1.Time { return metav1.Unix(int64(second), 0) }
	made := func(name string, second int) client.Object {
		o := labelled(&v1alpha1.Release{}, name, "dev")
		o.SetCreationTimestamp(at(second))
		return o
	}
	going := made("made-after-and-going", 12)
	gone := at(13)
	going.SetDeletionTimestamp(&gone)
	going.SetFinalizers([]string{"steading.dev/test"})
	y := Youngers{Kinds: kinds, Reader: kube(t, interceptor.Funcs{}, made("made-before", 9), made("made-after", 11), made("made-in-that-second", 10), going)}
	elder := &v1alpha1.Boundary{}
	want := Standing{"Release made-after", "Release made-after-and-going", "Release made-before", "Release made-in-that-second"}
	for range 2 {
		have, err := y.StandingBefore(t.Context(), elder, names.LabelComposite, "xr-dev")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("deleted %v: -want, +have:\n%s", elder.DeletionTimestamp, diff)
		}
		began := at(10)
		elder.DeletionTimestamp = &began
		want = Standing{"Release made-after-and-going", "Release made-before"}
	}
}

func TestStandingNamesThree(t *testing.T) {
	if have := (Standing{"A a", "B b"}).String(); have != "A a, B b" {
		t.Error(have)
	}
	if have := (Standing{"A a", "B b", "C c", "D d", "E e"}).String(); have != "A a, B b, C c and 2 more" {
		t.Error(have)
	}
}

func TestGone(t *testing.T) {
	with := func(fs ...string) client.Object {
		return &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Finalizers: fs}}
	}
	p := Gone()
	if p.Create(event.CreateEvent{Object: with()}) {
		t.Error("a younger that is made lets no elder go on")
	}
	if !p.Delete(event.DeleteEvent{Object: with()}) || !p.Update(event.UpdateEvent{ObjectOld: with("a", "b"), ObjectNew: with("a")}) {
		t.Error("a younger that goes, or loses a finalizer, does")
	}
	if p.Update(event.UpdateEvent{ObjectOld: with("a"), ObjectNew: with("a")}) {
		t.Error("any other change does not")
	}
}
