package build

import (
	"path"
	"path/filepath"
	"testing"

	xpv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

// A Configuration depends on the packages beside it, wherever it is, and its Compositions call the function by the name
// that it is installed under.
func TestPackagesAreStampedForTheirRegistry(t *testing.T) {
	cases := map[string]struct {
		reason               string
		registry, repository string
		dependency, function string
	}{
		"Public":   {"Where releases are.", "ghcr.io", "steading-dev", "ghcr.io/steading-dev/provider-test", "steading-dev-function-test"},
		"Port":     {"The registry is not in the name, its port neither.", "registry.internal:5000", "steading", "registry.internal:5000/steading/provider-test", "steading-function-test"},
		"DeepPath": {"The whole path is.", "10.0.0.7:5000", "mirrors/ghcr.io/steading-dev", "10.0.0.7:5000/mirrors/ghcr.io/steading-dev/provider-test", "mirrors-ghcr-io-steading-dev-function-test"},
		"NoPath":   {"A registry of its own.", "steading.internal", "", "steading.internal/provider-test", "function-test"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options(tree(t, nil))
			o.Registry, o.Repository = tc.registry, tc.repository
			stream, _, err := readPackage(o, "configuration-test")
			if err != nil {
				t.Fatal(err)
			}
			p := parse(t, string(stream))
			c, ok := p.GetMeta()[0].(*pkgmetav1.Configuration)
			if !ok {
				t.Fatalf("the metadata is a %T", p.GetMeta()[0])
			}
			want := []pkgmetav1.Dependency{
				{APIVersion: ptr.To("pkg.crossplane.io/v1"), Kind: ptr.To("Provider"), Package: ptr.To(tc.dependency), Version: "v0.1.0"},
				{APIVersion: ptr.To("pkg.crossplane.io/v1"), Kind: ptr.To("Function"), Package: ptr.To("xpkg.example.org/other/function-auto-ready"), Version: "v1.0.0"},
			}
			if diff := cmp.Diff(want, c.Spec.DependsOn); diff != "" {
				t.Errorf("%s: dependencies: -want, +got:\n%s", tc.reason, diff)
			}
			var called []string
			for _, o := range p.GetObjects() {
				if composition, ok := o.(*xpv1.Composition); ok {
					for _, s := range composition.Spec.Pipeline {
						called = append(called, s.FunctionRef.Name)
					}
				}
			}
			if diff := cmp.Diff([]string{tc.function, "function-auto-ready"}, called); diff != "" {
				t.Errorf("%s: functions that are called: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The cases are those of crossplane-runtime's own test of ToDNSLabel, and more of its edges, with what it makes of them.
func TestDNSLabelIsCrossplanes(t *testing.T) {
	cases := map[string]struct{ reason, repository, want string }{
		"ReplaceAll":          {"All valid symbols are replaced with a dash.", "-hi/my.name/is-", "hi-my-name-is"},
		"TrimTo63":            {"What is longer is cut off.", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
		"TrimTo63MinusDashes": {"Trailing dashes go.", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa----", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
		"Underscore":          {"What is no separator is left out.", "my_mirror/function-steading", "mymirror-function-steading"},
		"LongMirror":          {"The name of the package itself may be cut.", "mirrors/registries/of/the/whole/company/ghcr.io/steading-dev/function-steading", "mirrors-registries-of-the-whole-company-ghcr-io-steading-dev-fu"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := dnsLabel(tc.repository); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// What our own Compositions call is there once the Configuration is installed from where releases are.
func TestOurCompositionsCallOurFunction(t *testing.T) {
	o := options("../..")
	o.Registry = "ghcr.io"
	stream, _, err := readPackage(o, "configuration-steading")
	if err != nil {
		t.Fatal(err)
	}
	written, err := filepath.Glob("../../compositions/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, object := range parse(t, string(stream)).GetObjects() {
		composition, ok := object.(*xpv1.Composition)
		if !ok {
			continue
		}
		for _, s := range composition.Spec.Pipeline {
			calls++
			if s.FunctionRef.Name != "steading-dev-function-steading" {
				t.Errorf("Composition %s calls %s", composition.Name, s.FunctionRef.Name)
			}
		}
	}
	if calls != len(written) {
		t.Errorf("%d calls in %d Compositions, want one each", calls, len(written))
	}
}

// An example is what a person copies, so the API server has to take it.
func TestExampleOfTheProvidersConfigIsOne(t *testing.T) {
	m, err := readMetadata("../provider-runtime/" + metadataFile)
	if err != nil {
		t.Fatal(err)
	}
	example, err := readExamples(filepath.Join("../..", m.examples()))
	if err != nil {
		t.Fatal(err)
	}
	c := &runtimev1.ClusterProviderConfig{}
	if err := yaml.UnmarshalStrict(example, c); err != nil {
		t.Fatal(err)
	}
	if c.GroupVersionKind() != runtimev1.GroupVersion.WithKind("ClusterProviderConfig") || c.Name != names.DefaultProviderConfig {
		t.Errorf("the example is %s %s", c.GroupVersionKind(), c.Name)
	}
	for what, repository := range map[string]string{"chart": c.Spec.RuntimeChart.Repository, "image": c.Spec.CanonicalImage} {
		if want := map[string]string{"chart": RuntimeChart, "image": DevopsImage}[what]; repository != path.Join(publicRegistry, want) {
			t.Errorf("the %s is %s, want %s", what, repository, path.Join(publicRegistry, want))
		}
	}
}
