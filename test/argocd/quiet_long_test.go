//go:build long

package argocd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/test/harness"
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
	if diff := cmp.Diff(before, w.versions(t)); diff != "" {
		t.Errorf("resource versions, -before, +after:\n%s", diff)
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
	before, since := w.versions(t), time.Now()
	harness.Eventually(t, "all settles", func(context.Context) error {
		time.Sleep(time.Second)
		if now := w.versions(t); !cmp.Equal(before, now) {
			diff := cmp.Diff(before, now)
			before, since = now, time.Now()
			return errors.New(diff)
		}
		if time.Since(since) < 10*time.Second {
			return errors.New("not for long enough")
		}
		return nil
	})
	return before
}

// unversioned kinds are written by what reports on others.
var unversioned = []string{"Lease", "Event", "Application", "AppProject"}

// versions are the resource versions of everything on the control plane.
func (w *world) versions(t *testing.T) map[string]string {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(w.plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	m, err := metadata.NewForConfig(w.plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "watch") || slices.Contains(unversioned, r.Kind) {
				continue
			}
			items, err := m.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("cannot list %s: %v", r.Name, err)
			}
			for _, i := range items.Items {
				all[r.Kind+" "+i.Namespace+"/"+i.Name] = i.ResourceVersion
			}
		}
	}
	return all
}
