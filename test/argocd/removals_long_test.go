//go:build long

package argocd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// removesClaim has one more environment and then none. While its deletion is blocked, and until all of it is gone, Argo CD has
// the claim pending and the Application neither in sync nor healthy.
func removesClaim(t *testing.T, w *world) {
	const folder = "tenants/globex/dev/"
	stage := w.platform.read(t, folder+"kustomization.yaml")
	w.platform.write(t, folder+"second.yaml", strings.Replace(w.platform.read(t, "tenants/globex/environment/environment.yaml"), "name: web", "name: second", 1))
	w.platform.edit(t, folder+"kustomization.yaml", "- ../environment\n", "- ../environment\n- second.yaml\n")
	revision := w.push(t, "One more")
	w.wait(t, "globex-dev", "has one more", func(a application) bool { return a.settled(revision) })

	pin := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "globex-second-dev", Name: "pin", Finalizers: []string{"example.com/pin"}}}
	if err := w.admin.Create(t.Context(), pin); err != nil {
		t.Fatal(err)
	}
	w.platform.write(t, folder+"kustomization.yaml", stage)
	w.platform.git(t, "rm", "--quiet", folder+"second.yaml")
	revision = w.push(t, "One less")
	harness.Eventually(t, "the claim says what blocks it", func(context.Context) error {
		if e := w.environment(t, "globex", "second-dev"); e.Status.Phase != steading.EnvironmentDeletionBlocked {
			return errors.New(harness.Describe(e))
		}
		return nil
	})
	w.wait(t, "globex-dev", "waits", func(a application) bool {
		return a.text("sync", "revision") == revision && !a.synced() && a.text("health", "status") == progressing &&
			a.resource("Environment", "second-dev") == (health{progressing, "Pending deletion"})
	})
	if err := w.admin.Patch(t.Context(), pin, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	w.wait(t, "globex-dev", "is settled again", func(a application) bool { return a.settled(revision) })
	w.wantGone(t, &steading.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-globex", Name: "second-dev"}})
	w.wantGone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "globex-second-dev"}})
}

// removesTenant with its folder. What lives in it goes, and the Tenant itself once a person says so.
func removesTenant(t *testing.T, w *world) {
	w.platform.edit(t, "tenants/kustomization.yaml", "- globex/application.yaml\n", "")
	w.platform.git(t, "rm", "--quiet", "-r", "tenants/globex")
	w.push(t, "No globex")
	tenant := &steading.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "globex"}}
	app := w.wait(t, "globex-tenant", "is being deleted", func(a application) bool { return a.GetDeletionTimestamp() != nil })
	for _, stage := range []string{"dev", "prod"} {
		w.wantGone(t, &steading.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-globex", Name: "web-" + stage}})
	}
	harness.Eventually(t, "Argo CD waits for a person", func(context.Context) error {
		b, err := os.ReadFile(filepath.Join(w.plane.Dir(), "logs", account+".log"))
		if err == nil && !strings.Contains(string(b), "Tenant steading-system globex} requires manual confirmation to delete") {
			err = errors.New("its log does not say so")
		}
		return err
	})
	if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(tenant), tenant); err != nil || tenant.DeletionTimestamp != nil {
		t.Fatalf("the Tenant went before a person said so: %v", err)
	}
	approve := fmt.Sprintf(`{"metadata":{"annotations":{"argocd.argoproj.io/deletion-approved":%q}}}`, time.Now().UTC().Format(time.RFC3339))
	if err := w.plane.Client().Patch(t.Context(), app.Unstructured, client.RawPatch("application/merge-patch+json", []byte(approve))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"globex-tenant", "globex"} {
		harness.Eventually(t, name+" is gone", func(ctx context.Context) error {
			if _, err := w.application(ctx, name); err == nil {
				return errors.New("it is still there")
			} else if !kerrors.IsNotFound(err) {
				return err
			}
			return nil
		})
	}
	w.wantGone(t, tenant)
}

// removesStage with its Application. That goes after the environment, and the environment after all that was made for it.
func removesStage(t *testing.T, w *world) {
	const file = "tenants/acme/parts.yaml"
	parts := strings.Split(w.platform.read(t, file), "---\n")
	kept := slices.DeleteFunc(parts, func(p string) bool { return strings.Contains(p, "name: acme-dev\n") })
	w.platform.write(t, file, strings.Join(kept, "---\n"))
	w.platform.git(t, "rm", "--quiet", "-r", "tenants/acme/dev")
	revision := w.push(t, "No dev")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-shop-dev"}}
	edge, err := harness.Client(w.edge.Config())
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the stage is gone", func(ctx context.Context) error {
		_, err := w.application(ctx, "acme-dev")
		if err == nil {
			return errors.New("its Application is still there")
		}
		return client.IgnoreNotFound(err)
	})
	w.wantGone(t, &steading.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "shop-dev"}})
	if err := edge.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); !kerrors.IsNotFound(err) {
		t.Errorf("the Application went before the namespace %s did: %v", namespace.Name, err)
	}
	for _, name := range []string{"acme", "acme-prod"} {
		w.wait(t, name, "is settled", func(a application) bool { return a.settled(revision) })
	}
}

// wantGone is for what went before.
func (w *world) wantGone(t *testing.T, o client.Object) {
	t.Helper()
	if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); !kerrors.IsNotFound(err) {
		t.Errorf("%T %s is still there: %v", o, o.GetName(), err)
	}
}
