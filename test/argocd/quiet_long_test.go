//go:build long

package argocd

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/test/harness"
	"github.com/steading-dev/steading/test/versions"
)

// changesNothing: for three rounds of reconciliation and a hard refresh nothing is written to what is synced, and nothing is
// synced again. Not even what an operator added to what git has.
func changesNothing(t *testing.T, w *world) {
	reserved := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "steading-reserved-names"}}
	if err := w.admin.Patch(t.Context(), reserved, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"names":"www"}}`))); err != nil {
		t.Fatal(err)
	}
	before := w.settle(t)
	syncs := w.syncs(t)
	for round := range 3 {
		w.waitReconciled(t, fmt.Sprintf("round %d", round+1), nil)
	}
	w.waitReconciled(t, "hard refresh", func() { w.refresh(t, "hard") })
	for _, c := range versions.Changes(before, w.versions(t)) {
		t.Errorf("though nothing was done: %s", c)
	}
	if diff := cmp.Diff(syncs, w.syncs(t)); diff != "" {
		t.Errorf("syncs, -before, +after:\n%s", diff)
	}
}

// waitReconciled waits until every Application was reconciled once more, after what was done.
func (w *world) waitReconciled(t *testing.T, what string, do func()) {
	t.Helper()
	before := w.reconciled(t)
	if do != nil {
		do()
	}
	harness.Eventually(t, what, func(context.Context) error {
		for name, at := range w.reconciled(t) {
			if at == before[name] {
				return fmt.Errorf("%s was not reconciled since %s", name, at)
			}
		}
		return nil
	})
}

func (w *world) reconciled(t *testing.T) map[string]string {
	t.Helper()
	all, err := w.applications(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for _, a := range all {
		at[a.GetName()] = a.text("reconciledAt")
	}
	return at
}

// settle waits until nothing was written for a while.
func (w *world) settle(t *testing.T) map[string]string {
	t.Helper()
	return harness.Settled(t, 10*time.Second, func() map[string]string { return w.versions(t) })
}

// versions are the resource versions of everything on the control plane but what Argo CD reports in.
func (w *world) versions(t *testing.T) map[string]string {
	t.Helper()
	all, err := versions.Of(t.Context(), w.plane.Config(), func(kind schema.GroupKind, _ metav1.Object) bool {
		return kind.Kind != "Application" && kind.Kind != "AppProject"
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
