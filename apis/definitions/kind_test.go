package definitions

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xpv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// TestEveryKindIsCarried that the types have.
func TestEveryKindIsCarried(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{steading.AddToScheme, runtimev1.AddToScheme, forgejov1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	var want, have []string
	for gvk, of := range s.AllKnownTypes() {
		if _, ok := reflect.New(of).Interface().(client.Object); ok && strings.HasSuffix(gvk.Group, "steading.dev") {
			want = append(want, gvk.String())
			if gvk.GroupVersion() == steading.GroupVersion {
				want = append(want, gvk.GroupVersion().WithKind("X"+gvk.Kind).String())
			}
		}
	}
	for _, k := range All() {
		have = append(have, k.String())
	}
	slices.Sort(want)
	slices.Sort(have)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
}

// TestTheSameBuildIsCurrent, and each field that is taken out of what is served is told.
func TestTheSameBuildIsCurrent(t *testing.T) {
	served := fromTree(t)
	for _, k := range All() {
		crd, ok := served[k.Definition]
		if !ok {
			t.Errorf("there is no definition %s", k.Definition)
			continue
		}
		if f := k.Find(crd); !f.Current() {
			t.Errorf("%s: absent %t, missing %v", k.Definition, f.Absent, f.Missing)
		}
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		without(k.Schema, *schema, "", func(path string) {
			if have := k.Missing(*schema); !cmp.Equal(have, []string{path}) {
				t.Errorf("%s without %s: have %v", k.Definition, path, have)
			}
		})
	}
}

// TestRunnersAreListedByPhaseAndReason: what kubectl get says of runners, unless it is asked for more.
func TestRunnersAreListedByPhaseAndReason(t *testing.T) {
	want := []string{"PHASE .status.atProvider.phase", "REASON .status.atProvider.reason", "AGE .metadata.creationTimestamp"}
	var have []string
	for _, c := range fromTree(t)["runnerinstances.forgejo.steading.dev"].Spec.Versions[0].AdditionalPrinterColumns {
		if c.Priority == 0 {
			have = append(have, c.Name+" "+c.JSONPath)
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("after NAME: -want, +have:\n%s", diff)
	}
}

// without calls check with each field of built taken out of served in its turn.
func without(built, served extv1.JSONSchemaProps, path string, check func(path string)) {
	for _, name := range slices.Sorted(maps.Keys(built.Properties)) {
		if path == "" && name != "spec" && name != "status" {
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		was := served.Properties[name]
		delete(served.Properties, name)
		check(at)
		served.Properties[name] = was
		without(built.Properties[name], was, at, check)
	}
	if built.Items != nil {
		without(*built.Items.Schema, *served.Items.Schema, path+"[]", check)
	}
	if built.AdditionalProperties != nil {
		without(*built.AdditionalProperties.Schema, *served.AdditionalProperties.Schema, path+"{}", check)
	}
}

// fromTree are the definitions that this source tree brings, as an API server has them.
func fromTree(t *testing.T) map[string]*extv1.CustomResourceDefinition {
	t.Helper()
	all := map[string]*extv1.CustomResourceDefinition{}
	add := func(c *extv1.CustomResourceDefinition) {
		c.Status.Conditions = []extv1.CustomResourceDefinitionCondition{{Type: extv1.Established, Status: extv1.ConditionTrue}}
		all[c.Name] = c
	}
	for _, raw := range contents(t, "../../package/provider-*/crds/*.yaml") {
		c := &extv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, c); err != nil {
			t.Fatal(err)
		}
		add(c)
	}
	for _, raw := range contents(t, "../../xrds/*.yaml") {
		x := &xpv1.CompositeResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, x); err != nil {
			t.Fatal(err)
		}
		for _, of := range []func(*xpv1.CompositeResourceDefinition) (*extv1.CustomResourceDefinition, error){xcrd.ForCompositeResource, xcrd.ForCompositeResourceClaim} {
			c, err := of(x)
			if err != nil {
				t.Fatal(err)
			}
			add(c)
		}
	}
	return all
}

func contents(t *testing.T, pattern string) [][]byte {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	var all [][]byte
	for _, p := range paths {
		raw, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw)
	}
	return all
}
