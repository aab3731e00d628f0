//go:build long

package argocd

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/test/harness"
)

var applicationKind = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}

// patience is how long Argo CD may take with all of it.
const patience = 10 * time.Minute

// An application as it is now.
type application struct{ *unstructured.Unstructured }

func (a application) text(path ...string) string {
	s, _, _ := unstructured.NestedString(a.Object, append([]string{"status"}, path...)...)
	return s
}

func (a application) healthy() bool { return a.text("health", "status") == healthy }
func (a application) synced() bool  { return a.text("sync", "status") == "Synced" }

// settled is in sync with a revision, with no sync going on, and healthy.
func (a application) settled(revision string) bool {
	return a.healthy() && a.synced() && a.text("operationState", "phase") == "Succeeded" && (revision == "" || a.text("sync", "revision") == revision)
}

// awaits is the revision of the platform's repository that it should have: steading-install is of another.
func (a application) awaits(revision string) string {
	if a.GetName() == "steading-install" {
		return ""
	}
	return revision
}

// wave in which it is applied.
func (a application) wave() int {
	n, _ := strconv.Atoi(a.GetAnnotations()["argocd.argoproj.io/sync-wave"])
	return n
}

// parent is the Application that applies it.
func (a application) parent() string {
	name, _, _ := strings.Cut(a.GetAnnotations()["argocd.argoproj.io/tracking-id"], ":")
	return name
}

// String says all that matters about it, for a failure.
func (a application) String() string {
	parts := []string{fmt.Sprintf("%s: %s, %s at %.8s, %s %q", a.GetName(), a.text("health", "status"), a.text("sync", "status"), a.text("sync", "revision"),
		a.text("operationState", "phase"), a.text("operationState", "message"))}
	conditions, _, _ := unstructured.NestedSlice(a.Object, "status", "conditions")
	for _, c := range conditions {
		parts = append(parts, fmt.Sprint(c))
	}
	for _, m := range a.resources() {
		if h, ok := m["health"].(map[string]any); m["status"] != "Synced" || ok && h["status"] != healthy {
			parts = append(parts, fmt.Sprintf("%s %s is %v, %v", m["kind"], m["name"], m["status"], h))
		}
	}
	return strings.Join(parts, "; ")
}

// resources are what Argo CD knows of the Application's objects.
func (a application) resources() []map[string]any {
	list, _, _ := unstructured.NestedSlice(a.Object, "status", "resources")
	var all []map[string]any
	for _, r := range list {
		if m, ok := r.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// resource is the health that Argo CD knows of an object of the Application.
func (a application) resource(kind, name string) health {
	for _, m := range a.resources() {
		if m["kind"] == kind && m["name"] == name {
			return health{text(&unstructured.Unstructured{Object: m}, "health", "status"), text(&unstructured.Unstructured{Object: m}, "health", "message")}
		}
	}
	return health{}
}

// applications that there are.
func (w *world) applications(ctx context.Context) ([]application, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(applicationKind)
	if err := w.plane.Client().List(ctx, list, client.InNamespace(argo)); err != nil {
		return nil, err
	}
	all := make([]application, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, application{&list.Items[i]})
	}
	return all, nil
}

// application by name.
func (w *world) application(ctx context.Context, name string) (application, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(applicationKind)
	return application{u}, w.plane.Client().Get(ctx, client.ObjectKey{Namespace: argo, Name: name}, u)
}

// refresh Applications, as a repository's webhook does, or all of them. A hard one has them built anew too.
func (w *world) refresh(t *testing.T, how string, names ...string) {
	t.Helper()
	all, err := w.applications(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if len(names) > 0 && !slices.Contains(names, a.GetName()) {
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"argocd.argoproj.io/refresh":%q}}}`, how)
		if err := w.plane.Client().Patch(t.Context(), a.Unstructured, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
}

// push commits and has Argo CD look.
func (w *world) push(t *testing.T, message string) string {
	t.Helper()
	revision := w.platform.commit(t, message)
	w.refresh(t, "normal")
	return revision
}

// wait until an Application is as check wants it.
func (w *world) wait(t *testing.T, name, what string, check func(application) bool) application {
	t.Helper()
	var last application
	harness.Eventually(t, name+" "+what, func(ctx context.Context) (err error) {
		if last, err = w.application(ctx, name); err != nil {
			return err
		}
		if !check(last) {
			return errors.New(last.String())
		}
		return nil
	})
	return last
}

// watch has look see all Applications again and again, until stopped.
func (w *world) watch(t *testing.T, look func([]application)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if all, err := w.applications(ctx); err == nil {
				look(all)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// allApplications of the example: three of the platform, and four a tenant.
const allApplications = 11

// waitAll waits until all Applications are settled, with a revision of the platform's repository if one is given.
func (w *world) waitAll(t *testing.T, revision string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		all, err := w.applications(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == allApplications && !slices.ContainsFunc(all, func(a application) bool { return !a.settled(a.awaits(revision)) }) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not all Applications are settled within %s", patience)
		}
		time.Sleep(time.Second)
	}
}

var syncCounter = regexp.MustCompile(`(?m)^argocd_app_sync_total\{.*name="([^"]+)".*\} (\d+)$`)

// syncs that were made of each Application.
func (w *world) syncs(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, m := range syncCounter.FindAllStringSubmatch(w.metrics(t), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		counts[m[1]] += n
	}
	if len(counts) == 0 {
		t.Fatal("the controller counts no syncs")
	}
	return counts
}
