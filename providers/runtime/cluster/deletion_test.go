package cluster

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/target"
)

func overloaded(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }

func gone(_ *v1alpha1.Cluster, err error) bool { return errors.Is(err, errGone) }

func (w *world) delete() {
	w.t.Helper()
	if err := w.kube.Delete(w.t.Context(), w.get()); err != nil {
		w.t.Fatal(err)
	}
}

func blocked(reason, message string) func(*v1alpha1.Cluster, error) bool {
	return func(mg *v1alpha1.Cluster, _ error) bool {
		c := mg.GetCondition(steading.ConditionDeletionBlocked)
		return c.Status == corev1.ConditionTrue && string(c.Reason) == reason && strings.Contains(c.Message, message)
	}
}

// on the context, in whatever way.
func on(context string) []client.Object {
	m := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-" + name, Labels: map[string]string{names.LabelTenant: "acme", names.LabelEnvironment: name}}
	}
	p := &v1alpha1.Placement{ObjectMeta: m("placed")}
	p.Status.AtProvider.Grant = &v1alpha1.Grant{Context: context}
	b, r, e := &v1alpha1.Boundary{ObjectMeta: m("bound")}, &v1alpha1.Release{ObjectMeta: m("released")}, &v1alpha1.Edge{ObjectMeta: m("exposed")}
	b.Spec.ForProvider.Context, r.Spec.ForProvider.Context, e.Spec.ForProvider.Context = context, context, context
	return []client.Object{p, b, r, e}
}

func TestDeletionWaitsForWhateverNamesTheContext(t *testing.T) {
	for _, o := range on("edge") {
		_, kind := contextOf(o)
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, append(on("other"), o, tokenIn("edge-admin", goodToken))[4:]...)
			w.until("ready", ready)
			w.delete()
			w.until("blocked", blocked("WaitingForDependents", "environments are on it: "+o.GetLabels()[names.LabelEnvironment]))
			if w.kept() == nil || w.server.objects.count() != 12 {
				t.Error("what is on the context cannot be taken down any more")
			}
			if _, err := w.c.targets.Get(t.Context(), "acme-edge"); err != nil && strings.Contains(err.Error(), "no such context") {
				t.Errorf("the context is no target any more: %v", err)
			}
			if err := w.kube.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			w.until("gone", gone)
		})
	}
}

func TestDeletionLeavesNothing(t *testing.T) {
	w := newWorld(t, append(on("other"), tokenIn("edge-admin", goodToken))...)
	w.until("ready", ready)
	w.delete()
	w.until("gone", gone)
	if k := w.kept(); k != nil || w.server.objects.count() != 0 {
		t.Errorf("kept %v, %d guard objects", k, w.server.objects.count())
	}
	l := &rbacv1.RoleBindingList{}
	if err := w.kube.List(t.Context(), l); err != nil || len(l.Items) != 0 {
		t.Errorf("bindings %v, %v", l.Items, err)
	}
	unknown := new(target.UnreachableError)
	if _, err := w.c.targets.Get(t.Context(), "acme-edge"); !errors.As(err, &unknown) {
		t.Errorf("the context is still a target: %v", err)
	}
	if s := tokenIn("edge-admin", ""); w.kube.Get(t.Context(), client.ObjectKeyFromObject(s), s) != nil {
		t.Error("the tenant's own Secret was deleted")
	}
	if len(w.c.lines.byCluster) != 0 || !w.c.informed.Empty() || len(w.c.registered.keys) != 0 {
		t.Error("something is still held for the cluster")
	}
}

func TestDeletionOfWhatNeverWorked(t *testing.T) {
	w := newWorld(t)
	w.until("no Secret", not(steading.ReasonCredentialMissing, "there is no Secret"))
	w.delete()
	w.until("gone", gone)
}

func TestAClusterThatIsGoneForGoodIsAbandoned(t *testing.T) {
	w := newWorld(t, tokenIn("edge-admin", goodToken))
	w.until("ready", ready)
	w.server.answerWith(overloaded)
	w.server.cut()
	w.until("down", not(steading.ReasonTargetUnreachable, "503"))
	w.delete()
	w.until("blocked", blocked("TargetUnreachable", "steading.dev/abandon: uid-of-the-context"))

	claim := &steading.Context{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "edge", Annotations: map[string]string{names.AnnotationAbandon: "another"}}}
	w.put(claim)
	w.until("still blocked", blocked("TargetUnreachable", ""))
	claim.Annotations[names.AnnotationAbandon] = "uid-of-the-context"
	w.put(claim)
	w.until("gone", gone)
	if told := w.told(); !strings.Contains(told, "may be left on "+w.server.URL) || w.kept() != nil {
		t.Errorf("events %q", told)
	}
}

func TestAKeptCredentialThatSomebodyDeletes(t *testing.T) {
	w := newWorld(t, tokenIn("edge-admin", goodToken))
	w.until("ready", ready)
	old := w.kept()
	if err := w.kube.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if w.kept() == nil {
		t.Fatal("it is gone, though it may be needed")
	}
	w.until("made anew", func(mg *v1alpha1.Cluster, err error) bool {
		return ready(mg, err) && w.kept() != nil && w.kept().DeletionTimestamp == nil
	})
}

func TestEverythingDeletedAtOnce(t *testing.T) {
	w := newWorld(t, tokenIn("edge-admin", goodToken))
	w.until("ready", ready)
	for _, o := range []client.Object{w.kept(), tokenIn("edge-admin", ""), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "steading-context-edge"}},
		&steading.Context{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "edge"}}} {
		if err := w.kube.Delete(t.Context(), o); err != nil && !kerrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	w.delete()
	w.until("gone", gone)
	if w.kept() != nil || w.server.objects.count() != 0 {
		t.Errorf("%d guard objects are left", w.server.objects.count())
	}
}
