package argocd

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	exampleFolder = "../../cluster/argocd/example"
	exampleURL    = "https://git.example.com/platform.git"
)

// TestExampleHoldsTogether: every Application is of a folder that builds, and its project lets it hold what is there.
func TestExampleHoldsTogether(t *testing.T) {
	apps, projects := exampleApplications(t)
	if len(apps) != 10 {
		t.Errorf("there are %d Applications in waves, %v", len(apps), keys(apps))
	}
	for name, app := range apps {
		folder := folderOf(t, app)
		objects := kustomize(t, folder)
		if len(objects) == 0 {
			t.Errorf("%s holds nothing", name)
		}
		project, ok := projects[text(app, "spec", "project")]
		if !ok {
			t.Errorf("%s is of project %q, which is not there", name, text(app, "spec", "project"))
			continue
		}
		if sources, _, _ := unstructured.NestedStringSlice(project.Object, "spec", "sourceRepos"); !slices.Contains(sources, text(app, "spec", "source", "repoURL")) {
			t.Errorf("%s has a source that project %s does not allow", name, project.GetName())
		}
		for _, o := range objects {
			if !allows(project, o, text(app, "spec", "destination", "namespace")) {
				t.Errorf("project %s does not let %s hold %s %s/%s", project.GetName(), name, o.GetKind(), o.GetNamespace(), o.GetName())
			}
		}
	}
}

// TestExampleIsInWaves: what others build on comes before them.
func TestExampleIsInWaves(t *testing.T) {
	apps, _ := exampleApplications(t)
	wave := func(o *unstructured.Unstructured) int {
		text, ok := o.GetAnnotations()["argocd.argoproj.io/sync-wave"]
		n, err := strconv.Atoi(text)
		if ok && err != nil {
			t.Fatalf("%s %s is in wave %q", o.GetKind(), o.GetName(), text)
		}
		return n
	}
	waves := map[string]int{}
	for name, app := range apps {
		waves[name] = wave(app)
	}
	for _, o := range append(kustomize(t, exampleFolder+"/platform"), kustomize(t, exampleFolder+"/tenants/acme/tenant")...) {
		if o.GetKind() != "Application" {
			waves[o.GetKind()] = wave(o)
		}
	}
	for _, order := range [][]string{
		{"AppProject", "steading-install", "Function", "Configuration", "ClusterProviderConfig", "steading-tenants"},
		{"steading-install", "Provider", "Configuration"},
		{"Tenant", "Context"},
		{"acme-tenant", "acme-dev"}, {"acme-tenant", "acme-prod"}, {"globex-tenant", "globex-dev"}, {"globex-tenant", "globex-prod"},
	} {
		for i := range order[1:] {
			if waves[order[i]] >= waves[order[i+1]] {
				t.Errorf("%s is not before %s", order[i], order[i+1])
			}
		}
	}
}

// exampleApplications are all Applications of the example but that which is applied by hand, and all projects.
func exampleApplications(t *testing.T) (apps, projects map[string]*unstructured.Unstructured) {
	t.Helper()
	apps, projects = map[string]*unstructured.Unstructured{}, map[string]*unstructured.Unstructured{}
	root := &unstructured.Unstructured{}
	read(t, exampleFolder+"/steading.yaml", &root.Object)
	folders := []string{folderOf(t, root)}
	for len(folders) > 0 {
		for _, o := range kustomize(t, folders[0]) {
			switch o.GetKind() {
			case "AppProject":
				projects[o.GetName()] = o
			case "Application":
				apps[o.GetName()] = o
				folders = append(folders, folderOf(t, o))
			}
		}
		folders = folders[1:]
	}
	return apps, projects
}

// folderOf an Application: in the example, or in this repository.
func folderOf(t *testing.T, app *unstructured.Unstructured) string {
	t.Helper()
	top := "../.."
	if text(app, "spec", "source", "repoURL") == exampleURL {
		top = exampleFolder
	}
	folder := filepath.Join(top, text(app, "spec", "source", "path"))
	if _, err := os.Stat(filepath.Join(folder, "kustomization.yaml")); err != nil {
		t.Fatalf("%s is of a folder that is not there: %v", app.GetName(), err)
	}
	return folder
}

// clusterWide are kinds of what the example holds that are in no namespace.
var clusterWide = []string{
	"ClusterRole", "ClusterRoleBinding", "Namespace", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"Function", "Provider", "Configuration", "DeploymentRuntimeConfig", "ImageConfig", "ClusterProviderConfig",
}

// allows is whether a project allows an object, as far as the example goes: it names kinds one by one, or all.
func allows(project, o *unstructured.Unstructured, namespace string) bool {
	gvk := o.GroupVersionKind()
	list := func(field string) []any {
		all, _, _ := unstructured.NestedSlice(project.Object, "spec", field)
		return all
	}
	named := func(field string) bool {
		return slices.ContainsFunc(list(field), func(e any) bool {
			m, ok := e.(map[string]any)
			return ok && (m["group"] == "*" || m["group"] == gvk.Group) && (m["kind"] == "*" || m["kind"] == gvk.Kind)
		})
	}
	if slices.Contains(clusterWide, gvk.Kind) {
		return named("clusterResourceWhitelist")
	}
	if o.GetNamespace() != "" {
		namespace = o.GetNamespace()
	}
	there := slices.ContainsFunc(list("destinations"), func(e any) bool {
		m, ok := e.(map[string]any)
		pattern, _ := m["namespace"].(string)
		matched, err := filepath.Match(pattern, namespace)
		return ok && err == nil && matched
	})
	// A project that names no kinds of a namespace's allows all of them.
	return there && (len(list("namespaceResourceWhitelist")) == 0 || named("namespaceResourceWhitelist"))
}

func text(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return strings.TrimSpace(s)
}

// kustomize builds a folder.
func kustomize(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	var all []*unstructured.Unstructured
	for _, r := range built.Resources() {
		b, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(b); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	return all
}
