package home

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/blockers"
)

func TestRetainWaitsAndKeepsTheNamespace(t *testing.T) {
	w := newWorld(t, claim(), placement("globex", "web"), placement("acme", "dev")).settle()
	w.create(environment("tenant-acme", "dev"))
	w.goes(steading.DeletionRetain).waits()

	const blocked = "waiting for the deletion of Environment dev; the deletion policy is Retain, so delete what the tenant has: kubectl delete environments,contexts,runnerpools --all -n tenant-acme"
	if c := w.home.GetCondition(steading.ConditionDeletionBlocked); c.Status != corev1.ConditionTrue || c.Message != blocked {
		t.Errorf("condition %+v", c)
	}
	if c := w.claim(); c.Status.Phase != steading.TenantDeletionBlocked || c.Status.GetCondition(steading.ConditionDeletionBlocked).Message != blocked {
		t.Errorf("claim %+v", c.Status)
	}
	if !w.said(blocked) {
		t.Error("no event")
	}
	if !w.get(&steading.Environment{}, "tenant-acme", "dev") {
		t.Error("Retain deletes claims")
	}
	w.waits()
	if w.said(blocked) {
		t.Error("the same event again")
	}

	w.delete(placement("acme", "dev")).settle()
	if w.namespace() == nil || w.namespace().DeletionTimestamp != nil || !w.get(&rbacv1.RoleBinding{}, "tenant-acme", names.Owners) {
		t.Error("the namespace was not kept as it was")
	}
	if w.get(&rbacv1.Role{}, names.SystemNamespace, names.TenantReader("acme")) || w.get(&rbacv1.RoleBinding{}, names.SystemNamespace, names.TenantReader("acme")) {
		t.Error("what was made in steading-system stays")
	}
	if c := w.claim(); c.Status.Phase != steading.TenantDeleting || c.Status.GetCondition(steading.ConditionDeletionBlocked).Status == corev1.ConditionTrue {
		t.Errorf("claim %+v", c.Status)
	}
	if !w.said("namespace tenant-acme and what is in it stay") {
		t.Error("nobody was told that the namespace stays")
	}
}

func TestDeleteTakesClaimsThenTheNamespace(t *testing.T) {
	w := newWorld(t, claim(), placement("acme", "dev")).settle()
	w.create(environment("tenant-acme", "dev")).create(environment("tenant-globex", "web"))
	w.goes(steading.DeletionDelete).waits()
	if w.get(&steading.Environment{}, "tenant-acme", "dev") || !w.get(&steading.Environment{}, "tenant-globex", "web") {
		t.Error("the tenant's claims are to be deleted, and nobody else's")
	}
	if w.namespace() == nil {
		t.Fatal("the namespace went before what is in it")
	}
	if c := w.claim(); c.Status.Phase != steading.TenantDeleting {
		t.Errorf("claim %+v", c.Status)
	}
	w.delete(placement("acme", "dev")).settle()
	if w.namespace() != nil {
		t.Error("the namespace stays")
	}
}

// TestRunnerPoolsGoFirst: they make runners for as long as they are there, and what they are made of is read and told in the
// tenant's namespace.
func TestRunnerPoolsGoFirst(t *testing.T) {
	pool := func(namespace string) *steading.RunnerPool {
		return &steading.RunnerPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "linux", Finalizers: []string{"finalizer.apiextensions.crossplane.io"}}}
	}
	for policy, want := range map[steading.DeletionPolicy]string{
		steading.DeletionRetain: "waiting for the deletion of RunnerPool linux; the deletion policy is Retain, so delete what the tenant has: kubectl delete environments,contexts,runnerpools --all -n tenant-acme",
		steading.DeletionDelete: "waiting for the deletion of RunnerPool linux",
	} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t, claim(), pool("tenant-globex")).settle()
			w.create(pool("tenant-acme")).goes(policy).waits()
			w.waits()
			if ns := w.namespace(); ns == nil || ns.DeletionTimestamp != nil {
				t.Error("the namespace goes before the pool")
			}
			if c := w.home.GetCondition(steading.ConditionDeletionBlocked); c.Message != want {
				t.Errorf("condition %+v", c)
			}
			p := &steading.RunnerPool{}
			if !w.get(p, "tenant-acme", "linux") || (p.DeletionTimestamp != nil) != (policy == steading.DeletionDelete) {
				t.Errorf("pool %+v", p.ObjectMeta)
			}
			if p.DeletionTimestamp == nil {
				w.delete(p).get(p, "tenant-acme", "linux")
			}
			p.Finalizers = nil
			w.update(p)
			w.settle()
			if (w.namespace() == nil) != (policy == steading.DeletionDelete) {
				t.Errorf("namespace %+v", w.namespace())
			}
		})
	}
}

// terminating is a namespace that is being deleted, and cannot be.
func (w *world) terminating(cs ...corev1.NamespaceCondition) {
	w.t.Helper()
	ns := w.namespace()
	ns.Finalizers = []string{metav1.FinalizerOrphanDependents} // Kubernetes' own, which holds up nothing.
	w.update(ns)
	w.delete(ns)
	ns = w.namespace()
	ns.Status.Conditions = cs
	if err := w.kube.Status().Update(context.Background(), ns); err != nil {
		w.t.Fatal(err)
	}
}

// leaves objects in the namespace, as the metadata client finds them.
func (w *world) leaves(left ...*metav1.PartialObjectMetadata) {
	s := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(s); err != nil {
		w.t.Fatal(err)
	}
	kinds := meta.NewDefaultRESTMapper(nil)
	objs := make([]runtime.Object, 0, len(left))
	for _, o := range left {
		kinds.Add(o.GroupVersionKind(), meta.RESTScopeNamespace)
		objs = append(objs, o)
	}
	w.c.metadata, w.c.mapper = metadatafake.NewSimpleMetadataClient(s, objs...), kinds
}

func TestWhatHoldsUpTheNamespaceIsSaid(t *testing.T) {
	w := newWorld(t, claim()).settle()
	w.terminating(
		corev1.NamespaceCondition{Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionFalse, Message: "All content successfully deleted"},
		corev1.NamespaceCondition{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "Some resources are remaining: configmaps. has 1 resource instances"},
	)
	w.leaves(&metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "held", Finalizers: []string{"example.com/held"}},
	})
	began := w.namespace().DeletionTimestamp.Time
	w.clock.SetTime(began.Add(time.Second))
	w.goes(steading.DeletionDelete).waits()
	if c := w.claim(); c.Status.Phase != steading.TenantDeleting {
		t.Errorf("blocked before patience ran out: %+v", c.Status)
	}
	w.clock.SetTime(began.Add(blockers.Patience))
	w.waits()
	const want = `namespace tenant-acme cannot be deleted yet: NamespaceContentRemaining: Some resources are remaining: configmaps. has 1 resource instances; configmaps "held" (finalizers: example.com/held)`
	if c := w.claim(); c.Status.Phase != steading.TenantDeletionBlocked || c.Status.GetCondition(steading.ConditionDeletionBlocked).Message != want {
		t.Errorf("claim %+v", c.Status)
	}

	ns := w.namespace()
	ns.Finalizers = nil
	w.update(ns)
	w.settle()
}

func TestANamespaceThatSomeoneDeletesIsNotReady(t *testing.T) {
	w := newWorld(t).settle()
	w.terminating()
	if done, err := w.look(); !done || err != nil {
		t.Fatalf("done %t, error %v", done, err)
	}
	if c := w.home.GetCondition("Ready"); c.Status != corev1.ConditionFalse || c.Reason != steading.ReasonNamespaceBlocked {
		t.Errorf("condition %+v", c)
	}
}

func TestOtherTenantsHoldNothingUp(t *testing.T) {
	other := &v1alpha1.Home{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "globex", Labels: map[string]string{names.LabelTenant: "globex"}}}
	newWorld(t, other, placement("globex", "web")).settle().goes(steading.DeletionDelete).settle()
}
