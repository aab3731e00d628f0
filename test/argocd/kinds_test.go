package argocd

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	xpextensionsv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/cluster/local"
)

func buildTimeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 20*time.Minute)
}

// TestEveryKindHasHealth: every kind that we define, and every one of Crossplane's that brings ours, has a check under its
// very name, for only such a kind counts when its object is missing, or is not looked at.
func TestEveryKindHasHealth(t *testing.T) {
	kinds := append(ours(t), crossplanes(t)...)
	objects := make([]*unstructured.Unstructured, 0, len(kinds))
	for _, k := range kinds {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k)
		u.SetName("new")
		u.SetGeneration(1)
		objects = append(objects, u)
	}
	a := ask(t, settings(t), objects...)
	for i, k := range kinds {
		key := k.Group + "/" + k.Kind
		switch got, own := a.Objects[i], slices.Contains(a.Keys, key); {
		case got.Excluded && own:
			t.Errorf("%s is excluded and has a check that is never asked", key)
		case got.Excluded:
		case !own:
			t.Errorf("%s has no check of its own: name it in %s/kustomization.yaml, or exclude it", key, settingsFolder)
		case got.Error != "" || got.Lua == nil || got.Lua.Status == "":
			t.Errorf("%s: its check says %+v of an object without status: %s", key, got.Lua, got.Error)
		}
	}
}

// TestChecksAreOfKindsThatExist, so that none is left behind or misspelt.
func TestChecksAreOfKindsThatExist(t *testing.T) {
	known := []string{"argoproj.io/Application"}
	for _, k := range append(ours(t), crossplanes(t)...) {
		known = append(known, k.Group+"/"+k.Kind)
	}
	for _, key := range ask(t, settings(t)).Keys {
		if !slices.Contains(known, key) {
			t.Errorf("there is no kind %s", key)
		}
	}
}

// TestObjectsAreTrackedByAnnotation: labels of a claim are copied to its composite.
func TestObjectsAreTrackedByAnnotation(t *testing.T) {
	if got := ask(t, settings(t)).Tracking; got != "annotation" {
		t.Errorf("objects are tracked by %s", got)
	}
}

// ours are the kinds of our XRDs and of our providers' CRDs.
func ours(t *testing.T) []schema.GroupVersionKind {
	t.Helper()
	var kinds []schema.GroupVersionKind
	for _, file := range glob(t, "../../xrds/*.yaml") {
		x := &xpextensionsv1.CompositeResourceDefinition{}
		read(t, file, x)
		kinds = append(kinds, x.GetCompositeGroupVersionKind(), x.GetClaimGroupVersionKind())
	}
	return append(kinds, defined(t, "../../package/provider-*/crds/*.yaml")...)
}

// crossplanes are the kinds of the packages that ours come in, and of the definitions in them.
func crossplanes(t *testing.T) []schema.GroupVersionKind {
	t.Helper()
	if testing.Short() {
		t.Skip("Crossplane has to be built for this, and -short is set")
	}
	tools, err := local.BuildTools(t.Context(), func(line string) { t.Log(line) }, local.Crossplane)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []schema.GroupVersionKind
	crds := tools.Asset(local.Crossplane, "cluster/crds")
	for _, file := range []string{
		"pkg.crossplane.io_*", "apiextensions.crossplane.io_composition*", "apiextensions.crossplane.io_compositeresource*",
		"apiextensions.crossplane.io_managed*",
	} {
		kinds = append(kinds, defined(t, filepath.Join(crds, file))...)
	}
	return kinds
}

// defined are the kinds of CRDs.
func defined(t *testing.T, pattern string) []schema.GroupVersionKind {
	t.Helper()
	var kinds []schema.GroupVersionKind
	for _, file := range glob(t, pattern) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		read(t, file, crd)
		kinds = append(kinds, schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.Kind})
	}
	return kinds
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file is %s: %v", pattern, err)
	}
	return files
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
