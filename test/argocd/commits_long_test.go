//go:build long

package argocd

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xppkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/test/harness"
)

// changesClaim promotes a version from dev to prod. Argo CD does not find a stage healthy that runs another version than git
// asks for.
func changesClaim(t *testing.T, w *world) {
	for _, stage := range []string{"dev", "prod"} {
		if stage == "dev" {
			w.platform.edit(t, "tenants/acme/dev/version.yaml", "1.4.2", "1.4.3")
		} else {
			w.platform.write(t, "tenants/acme/prod/version.yaml", w.platform.read(t, "tenants/acme/dev/version.yaml"))
		}
		before := w.composite(t, "acme", "shop-"+stage)
		revision := w.push(t, "Version 1.4.3 in "+stage)
		w.wait(t, "acme-"+stage, "is settled", func(a application) bool { return a.settled(revision) })
		if got := w.environment(t, "acme", "shop-"+stage); got.Status.DeployedVersion != "1.4.3" {
			t.Errorf("Argo CD finds %s healthy, but: %s", stage, harness.Describe(got))
		}
		if after := w.composite(t, "acme", "shop-"+stage); after != before {
			t.Errorf("the composite of %s was %s and is %s", stage, before, after)
		}
		if stage == "dev" {
			if got := w.environment(t, "acme", "shop-prod"); got.Spec.Version != "1.4.2" {
				t.Errorf("prod is asked for %s before it is promoted", got.Spec.Version)
			}
		}
	}
}

// breaksClaim asks for less than the runtime needs. Argo CD shows the refusal in the platform's words, what runs goes on, and
// the next commit mends it.
func breaksClaim(t *testing.T, w *world) {
	const file, namespace = "tenants/globex/environment/environment.yaml", "globex-web-dev"
	running := w.deployments(t, namespace)
	w.platform.edit(t, file, "memory: 20Gi", "memory: 1Gi")
	revision := w.push(t, "Too small")
	a := w.wait(t, "globex-dev", "is degraded", func(a application) bool {
		return a.text("health", "status") == degraded && a.text("sync", "revision") == revision
	})
	const want = "memory 1Gi is below the 16Gi that the runtime needs, 15Gi short: raise spec.size.memory"
	if diff := cmp.Diff(health{degraded, want}, a.resource("Environment", "web-dev")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(running, w.deployments(t, namespace)); diff != "" {
		t.Errorf("what runs, -before, +after:\n%s", diff)
	}
	w.platform.edit(t, file, "memory: 1Gi", "memory: 20Gi")
	revision = w.push(t, "As before")
	for _, name := range []string{"globex-dev", "globex-prod"} {
		w.wait(t, name, "is settled again", func(a application) bool { return a.settled(revision) })
	}
}

// breaksBuild commits what the API server does not take, and then what is no YAML. Nothing changes, and both are said.
func breaksBuild(t *testing.T, w *world) {
	const file = "tenants/globex/dev/version.yaml"
	good := w.platform.read(t, file)
	before := w.environment(t, "globex", "web-dev")

	w.platform.write(t, file, good+"  state: Sleeping\n")
	w.push(t, "No such state")
	w.wait(t, "globex-dev", "says what the API server says", func(a application) bool {
		return strings.Contains(a.String()+fmt.Sprint(a.Object["status"]), `Unsupported value: "Sleeping"`)
	})
	w.platform.write(t, file, good+"  state: [\n")
	w.push(t, "No YAML")
	w.wait(t, "globex-dev", "says that it cannot be built", func(a application) bool {
		return strings.Contains(a.String(), "ComparisonError") && strings.Contains(a.String(), "version.yaml")
	})
	if after := w.environment(t, "globex", "web-dev"); after.Generation != before.Generation {
		t.Errorf("the claim was changed: %+v", after.Spec)
	}
	w.platform.write(t, file, good)
	revision := w.push(t, "As before")
	w.wait(t, "globex-dev", "is settled again", func(a application) bool { return a.settled(revision) })
}

// replaceRefused: neither a sync with Replace=true nor kubectl has a claim lose its composite.
func replaceRefused(t *testing.T, w *world) {
	const file = "tenants/globex/dev/version.yaml"
	good := w.platform.read(t, file)
	before := w.composite(t, "globex", "web-dev")
	w.platform.write(t, file, strings.Replace(good, "  name: any\n", "  name: any\n  annotations: {argocd.argoproj.io/sync-options: Replace=true}\n", 1)+"  state: Stopped\n")
	w.push(t, "Replace it")
	w.wait(t, "globex-dev", "says that it is refused", func(a application) bool {
		return strings.Contains(fmt.Sprint(a.Object["status"]), "use kubectl apply or patch, not replace")
	})

	claim := kustomize(t, w.platform.dir+"/tenants/globex/prod")
	b, err := claim[0].MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), w.tools.Path(local.Kubectl), "--kubeconfig="+w.plane.Kubeconfig(), "replace", "-f", "-")
	cmd.Stdin = strings.NewReader(string(b))
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "use kubectl apply or patch, not replace") {
		t.Errorf("kubectl replace: %v: %s", err, out)
	}

	if after := w.composite(t, "globex", "web-dev"); after != before {
		t.Errorf("the composite was %s and is %s", before, after)
	}
	w.platform.write(t, file, good)
	revision := w.push(t, "As before")
	w.wait(t, "globex-dev", "is settled again", func(a application) bool { return a.settled(revision) })
}

// upgrades the platform by one commit, and no environment is deployed again.
func upgrades(t *testing.T, w *world) {
	root, err := local.ModuleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const second = "v0.2.0"
	// Something of cluster/install has to differ, or the order would not show.
	w.project.edit(t, "cluster/install/base/40-reserved-names.yaml", "labels: {app.kubernetes.io/part-of: steading}", "labels: {app.kubernetes.io/part-of: steading, example.com/release: second}")
	w.release(t, root, second)
	running := w.deployments(t, "globex-web-prod")
	for _, file := range []string{"install", "function", "provider", "provider-forgejo", "configuration"} {
		w.platform.edit(t, "platform/"+file+".yaml", firstRelease, second)
	}
	revision := w.push(t, "Upgrade")
	w.waitAll(t, revision)
	for _, p := range []struct {
		of   xppkgv1.Package
		name string
	}{{&xppkgv1.Configuration{}, "configuration-steading"}, {&xppkgv1.Function{}, "steading-dev-function-steading"}, {&xppkgv1.Provider{}, "steading-dev-provider-runtime"}, {&xppkgv1.Provider{}, "steading-dev-provider-forgejo"}} {
		if err := w.plane.Client().Get(t.Context(), client.ObjectKey{Name: p.name}, p.of); err != nil {
			t.Fatal(err)
		}
		if healthy := p.of.GetCondition(xppkgv1.TypeHealthy); !strings.HasSuffix(p.of.GetSource(), second) || healthy.Status != corev1.ConditionTrue {
			t.Errorf("Argo CD finds the platform healthy, but package %s of %s says %s", p.name, p.of.GetSource(), healthy.Message)
		}
	}
	reserved := &corev1.ConfigMap{}
	if err := w.admin.Get(t.Context(), client.ObjectKey{Namespace: names.SystemNamespace, Name: "steading-reserved-names"}, reserved); err != nil {
		t.Fatal(err)
	}
	if reserved.Labels["example.com/release"] != "second" {
		t.Errorf("what is installed beside the packages is not of the second release: %+v", reserved)
	}
	if diff := cmp.Diff(running, w.deployments(t, "globex-web-prod")); diff != "" {
		t.Errorf("what runs, -before, +after:\n%s", diff)
	}
}

func (w *world) environment(t *testing.T, tenant, name string) *steading.Environment {
	t.Helper()
	e := &steading.Environment{}
	if err := w.admin.Get(t.Context(), client.ObjectKey{Namespace: "tenant-" + tenant, Name: name}, e); err != nil {
		t.Fatal(err)
	}
	return e
}

// composite that a claim is bound to.
func (w *world) composite(t *testing.T, tenant, name string) string {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(steading.GroupVersion.WithKind("Environment"))
	if err := w.plane.Client().Get(t.Context(), client.ObjectKey{Namespace: "tenant-" + tenant, Name: name}, u); err != nil {
		t.Fatal(err)
	}
	ref, _, _ := unstructured.NestedString(u.Object, "spec", "resourceRef", "name")
	if ref == "" {
		t.Fatalf("the claim %s is bound to nothing", name)
	}
	return ref
}

// deployments of a namespace, with their generations.
func (w *world) deployments(t *testing.T, namespace string) map[string]int64 {
	t.Helper()
	list := &appsv1.DeploymentList{}
	if err := w.admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	generations := map[string]int64{}
	for i := range list.Items {
		generations[list.Items[i].Name] = list.Items[i].Generation
	}
	if len(generations) == 0 {
		t.Fatalf("nothing runs in %s", namespace)
	}
	return generations
}
