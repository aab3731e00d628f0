package kit

import (
	"context"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

func TestAFinalizerIsAddedWithoutLosingWhatWasSeen(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha1.Cluster{}).
		WithObjects(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "steading-system", Name: "acme-edge"}}).Build()
	mg := &v1alpha1.Cluster{}
	key := client.ObjectKey{Namespace: "steading-system", Name: "acme-edge"}
	if err := c.Get(context.Background(), key, mg); err != nil {
		t.Fatal(err)
	}
	MarkNotReady(mg, "CredentialMissing", "there is no Secret")
	f := keepStatus{resource.NewAPIFinalizer(c, managed.FinalizerName)}
	if err := f.AddFinalizer(context.Background(), mg); err != nil {
		t.Fatal(err)
	}
	if got := mg.GetCondition("Ready"); got.Reason != "CredentialMissing" {
		t.Errorf("what was seen is lost: %+v", mg.Status)
	}
	if err := c.Status().Update(context.Background(), mg); err != nil {
		t.Errorf("the status cannot be written after it: %v", err)
	}
	if err := c.Get(context.Background(), key, mg); err != nil || len(mg.Finalizers) != 1 {
		t.Errorf("finalizers %v, %v", mg.Finalizers, err)
	}
}

// TestFinalizerIsCrossplanes: what composers desire is what the managed reconciler looks for.
func TestFinalizerIsCrossplanes(t *testing.T) {
	if names.Finalizer != managed.FinalizerName {
		t.Errorf("have %s, want %s", names.Finalizer, managed.FinalizerName)
	}
}
