package build

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	helm "helm.sh/helm/v3/pkg/registry"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/package/charts"
)

var amd64, arm64 = v1.Platform{OS: "linux", Architecture: "amd64"}, v1.Platform{OS: "linux", Architecture: "arm64"}

func digests(a *Artifacts) map[string]string {
	out := map[string]string{}
	for _, one := range a.All() {
		out[one.Tagged()] = one.Digest
	}
	return out
}

func TestSameSourcesMakeTheSameDigestsAnywhere(t *testing.T) {
	build := func(dir string) map[string]string {
		o := options(dir)
		o.Platforms = []string{"linux/amd64", "linux/arm64"}
		a, err := All(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return digests(a)
	}
	here := build(tree(t, nil))
	t.Setenv("GOFLAGS", "-tags=other")
	t.Setenv("GOAMD64", "v3")
	dir := tree(t, nil)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "t"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if diff := cmp.Diff(here, build(dir)); diff != "" {
		t.Errorf("-first, +in another folder, under git, with other settings:\n%s", diff)
	}
	if len(here) != 6 {
		t.Errorf("built %v", here)
	}
}

func TestOtherSourcesMakeOtherDigests(t *testing.T) {
	cases := map[string]struct {
		reason string
		change map[string]string
		want   []string
	}{
		"Command":  {"only the image of that command", map[string]string{"package/images/devops/main.go": "package main\n\nfunc main() { println() }\n"}, []string{"devops"}},
		"Template": {"only the chart", map[string]string{"package/charts/runtime/templates/it.yaml": "kind: Other\n"}, []string{"charts/runtime"}},
		"CRD":      {"only the package that has it", map[string]string{"package/provider-test/crds/things.yaml": crd + "  labels: {a: b}\n"}, []string{"provider-test"}},
		"Readme":   {"only the package that it describes", map[string]string{"package/provider-test/README.md": "# Other\n"}, []string{"provider-test"}},
		"Example":  {"only the package that it shows", map[string]string{"cluster/examples/10.yaml": "# Other\nkind: Tenant\n"}, []string{"configuration-test"}},
		"Install":  {"only the chart of what is installed", map[string]string{"cluster/install/templates/it.yaml": "kind: It\n"}, []string{"charts/steading"}},
		"NoChart":  {"nothing: the chart leaves Go files out", map[string]string{"cluster/install/doc.go": "package other\n"}, nil},
		"Comment":  {"nothing that anybody reads", map[string]string{"package/provider-test/crds/things.yaml": "# Generated.\n" + crd}, nil},
	}
	before, err := All(t.Context(), options(tree(t, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after, err := All(t.Context(), options(tree(t, tc.change)))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, one := range after.All() {
				if one.Digest != before.All()[i].Digest {
					got = append(got, strings.TrimPrefix(one.Repository, "127.0.0.1:5000/steading-dev/"))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +changed:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPushAll(t *testing.T) {
	o := options(tree(t, nil))
	o.Registry, o.ImageTags, o.Platforms = serve(t), []string{"1.4.2", "1.4.3"}, []string{"linux/amd64", "linux/arm64"}
	a, err := PushAll(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("ImageHasAllTags", func(t *testing.T) {
		for _, tag := range []string{"1.4.2", "1.4.3"} {
			img := pull(t, a.Image.Repository+":"+tag, arm64)
			c, err := img.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if c.Architecture != "arm64" || c.Config.User != "65532:65532" || !c.Created.Equal(epoch) {
				t.Errorf("%s: %s, user %s, made %s", tag, c.Architecture, c.Config.User, c.Created)
			}
			if diff := cmp.Diff([]string{"/usr/local/bin/devops"}, c.Config.Entrypoint); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tag, diff)
			}
		}
	})

	t.Run("ImagesHaveWhatABinaryNeedsAndNothingElse", func(t *testing.T) {
		for _, of := range []Artifact{a.Image, a.Packages["function-test"], a.Packages["provider-test"]} {
			for _, p := range []v1.Platform{amd64, arm64} {
				want := map[string]int64{
					"etc/": 0o755, "etc/group": 0o644, "etc/passwd": 0o644, "etc/ssl/": 0o755, "etc/ssl/certs/": 0o755, "etc/ssl/certs/ca-certificates.crt": 0o644,
					"home/": 0o755, "home/steading/": 0o750, "tmp/": 0o1777,
					"usr/": 0o755, "usr/local/": 0o755, "usr/local/bin/": 0o755, "usr/local/bin/" + path.Base(of.Repository): 0o755,
				}
				if diff := cmp.Diff(want, files(t, pull(t, of.Pinned(), p))); diff != "" {
					t.Errorf("%s for %s: files and modes: -want, +got:\n%s", of.Repository, p.Architecture, diff)
				}
			}
		}
	})

	t.Run("BinariesAreOfTheirArchitecture", func(t *testing.T) {
		for p, want := range map[*v1.Platform]elf.Machine{&amd64: elf.EM_X86_64, &arm64: elf.EM_AARCH64} {
			b := file(t, pull(t, a.Packages["provider-test"].Pinned(), *p), "usr/local/bin/provider-test")
			got, err := elf.NewFile(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if got.Machine != want {
				t.Errorf("%s: the binary is for %s, want %s", p.Architecture, got.Machine, want)
			}
			if libraries, err := got.ImportedLibraries(); err != nil || len(libraries) > 0 {
				t.Errorf("%s: the binary is not static: it imports %v, %v", p.Architecture, libraries, err)
			}
		}
	})

	t.Run("SizeIsThatOfAllPlatforms", func(t *testing.T) {
		one := options(tree(t, nil))
		single, err := Image(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		if a.Image.Size <= single.Size || single.Size < 100<<10 {
			t.Errorf("the image for one platform has %d bytes, for two %d", single.Size, a.Image.Size)
		}
	})

	t.Run("ExamplesAreAsTheyAreWritten", func(t *testing.T) {
		for name, want := range map[string]string{
			"provider-test":      "---\n# What it is for.\nkind: Thing\n",
			"configuration-test": "---\nkind: Tenant\n---\nkind: Environment\n",
		} {
			if diff := cmp.Diff(want, annotated(t, pull(t, a.Packages[name].Pinned(), arm64), "upbound", ".up/examples.yaml")); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", name, diff)
			}
		}
	})

	t.Run("PackagesSayWhatTheyAre", func(t *testing.T) {
		p := parse(t, packageYAML(t, pull(t, a.Packages["function-test"].Pinned(), amd64)))
		f, ok := p.GetMeta()[0].(*pkgmetav1.Function)
		if !ok || f.Annotations["meta.crossplane.io/readme"] != "# Function\n" {
			t.Errorf("the metadata is %v, want one with the readme", p.GetMeta()[0])
		}
	})

	t.Run("InstallChartLooksForPackagesWhereTheyAre", func(t *testing.T) {
		c := pulledChart(t, a.Install)
		if c.Values["registry"] != path.Dir(a.Image.Repository) {
			t.Errorf("values %v, want registry %s", c.Values, path.Dir(a.Image.Repository))
		}
		for _, f := range c.Raw {
			if strings.HasSuffix(f.Name, ".go") {
				t.Errorf("the chart has %s", f.Name)
			}
		}
	})

	t.Run("InstallChartHasTheVersionOfThePackages", func(t *testing.T) {
		m := pulledChart(t, a.Install).Metadata
		if want := []string{"0.1.0"}; m.Version != "0.1.0" || m.AppVersion != "v0.1.0" || m.Description != "What is installed." || !slices.Equal(a.Install.Tags, want) {
			t.Errorf("tags %v, %+v", a.Install.Tags, m)
		}
	})

	t.Run("HelmPullsTheChart", func(t *testing.T) {
		c, err := helm.NewClient(helm.ClientOptPlainHTTP())
		if err != nil {
			t.Fatal(err)
		}
		pulled, err := c.Pull(a.Chart.Repository + ":1.2.3+a")
		if err != nil {
			t.Fatal(err)
		}
		if pulled.Manifest.Digest != a.Chart.Digest {
			t.Errorf("pulled %s, pushed %s", pulled.Manifest.Digest, a.Chart.Digest)
		}
		if pulled.Chart.Meta.Name != "runtime" || pulled.Chart.Meta.Version != "1.2.3+a" {
			t.Errorf("pulled %v", pulled.Chart.Meta)
		}
		got, err := loader.LoadArchive(bytes.NewReader(pulled.Chart.Data))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Templates) != 1 || string(got.Templates[0].Data) != "kind: It\n" {
			t.Errorf("pulled templates %v", got.Templates)
		}
	})

	t.Run("PackagesBringTheirRuntime", func(t *testing.T) {
		for name, want := range map[string][]string{
			"function-test":      {"/usr/local/bin/function-test"},
			"provider-test":      {"/usr/local/bin/provider-test"},
			"configuration-test": nil,
		} {
			c, err := pull(t, a.Packages[name].Tagged(), arm64).ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, c.Config.Entrypoint); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", name, diff)
			}
		}
	})

	t.Run("PackagesHoldTheirObjects", func(t *testing.T) {
		for name, kinds := range map[string][]string{
			"function-test":      {"Function"},
			"provider-test":      {"Provider", "CustomResourceDefinition"},
			"configuration-test": {"Configuration", "CompositeResourceDefinition", "Composition"},
		} {
			for _, p := range []v1.Platform{amd64, arm64} {
				var got []string
				for _, doc := range strings.Split(strings.TrimPrefix(packageYAML(t, pull(t, a.Packages[name].Pinned(), p)), "---\n"), "\n---\n") {
					o := struct{ Kind string }{}
					if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
						t.Fatal(err)
					}
					got = append(got, o.Kind)
				}
				if diff := cmp.Diff(kinds, got); diff != "" {
					t.Errorf("%s: -want, +got:\n%s", name, diff)
				}
			}
		}
	})

	t.Run("OwnDependenciesArePinned", func(t *testing.T) {
		doc, _, _ := strings.Cut(strings.TrimPrefix(packageYAML(t, pull(t, a.Packages["configuration-test"].Pinned(), amd64)), "---\n"), "\n---\n")
		got := pkgmetav1.Configuration{}
		if err := yaml.UnmarshalStrict([]byte(doc), &got); err != nil {
			t.Fatal(err)
		}
		want := []pkgmetav1.Dependency{
			{APIVersion: ptr.To("pkg.crossplane.io/v1"), Kind: ptr.To("Provider"), Package: ptr.To(a.Packages["provider-test"].Repository), Version: "v0.1.0"},
			{APIVersion: ptr.To("pkg.crossplane.io/v1"), Kind: ptr.To("Function"), Package: ptr.To("xpkg.example.org/other/function-auto-ready"), Version: "v1.0.0"},
		}
		if diff := cmp.Diff(want, got.Spec.DependsOn); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

func TestExternalPackagesHaveNoRuntime(t *testing.T) {
	o := options(tree(t, map[string]string{"functions/cmd/main.go": "", "providers/test/cmd/main.go": ""}))
	o.Registry, o.External = serve(t), true
	a, err := PushAll(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range a.Packages {
		m, err := pull(t, p.Pinned(), amd64).Manifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range m.Layers {
			if l.Annotations["io.crossplane.xpkg"] == "" {
				t.Errorf("%s has a layer that is neither objects nor examples", name)
			}
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	const configuration = "package/configuration-test/crossplane.yaml"
	cases := map[string]struct {
		reason  string
		change  map[string]string
		options func(*Options)
		want    string
	}{
		"NoVersion":   {"Crossplane resolves versions", nil, func(o *Options) { o.Version = "" }, `cannot build version ""`},
		"Latest":      {"Crossplane resolves versions", nil, func(o *Options) { o.Version = "latest" }, "give a semantic version"},
		"NoRegistry":  {"docker.io is never meant", nil, func(o *Options) { o.Registry = "" }, `cannot build for registry ""`},
		"Platform":    {"nothing of ours runs there", nil, func(o *Options) { o.Platforms = []string{"windows/amd64"} }, `cannot build for platform "windows/amd64"`},
		"NoSources":   {"the wrong folder", nil, func(o *Options) { o.RepoDir = t.TempDir() }, "cannot build ./package/images/devops"},
		"Compile":     {"the compiler's words", map[string]string{"package/images/devops/main.go": "package main\n\nfunc main() { x }\n"}, nil, "undefined: x"},
		"NoCommand":   {"a provider without a process", map[string]string{"providers/test/cmd/main.go": ""}, nil, "its command should be providers/test/cmd"},
		"NoCRDs":      {"a provider without kinds", map[string]string{"package/provider-test/crds/things.yaml": ""}, nil, "run make generate"},
		"ForeignKind": {"Crossplane would refuse the package", map[string]string{"package/provider-test/crds/role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"}, nil, "package/provider-test/crds/role.yaml: a ClusterRole.rbac.authorization.k8s.io cannot be in such a package"},
		"Name":        {"two names for one package", map[string]string{"package/other/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata: {name: function-other}\nspec: {crossplane: {version: v2}}\n"}, nil, `its crossplane.yaml calls it "function-other"`},
		"Typo":        {"a field that Crossplane does not know", map[string]string{configuration: "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: configuration-test}\nspec: {crossplan: {}}\n"}, nil, `unknown field "crossplan"`},
		"Unbound":     {"any Crossplane would take it", map[string]string{configuration: "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: configuration-test}\nspec: {}\n"}, nil, "it has no spec.crossplane.version"},
		"Constraint":  {"no Crossplane would take it", map[string]string{configuration: "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: configuration-test}\nspec: {crossplane: {version: new}}\n"}, nil, "is no constraint"},
		"NoReadme":    {"nobody would know what it is", map[string]string{"package/function-test/README.md": ""}, nil, "cannot build package function-test: it has no readme"},
		"NoSource":    {"nobody would know what it is", map[string]string{configuration: "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: configuration-test, annotations: {meta.crossplane.io/maintainer: a}}\nspec: {crossplane: {version: v2}}\n"}, nil, "its crossplane.yaml has no annotation meta.crossplane.io/source"},
		"Kind":        {"no kind of package", map[string]string{configuration: "apiVersion: meta.pkg.crossplane.io/v1\nkind: Thing\n"}, nil, `its kind is "Thing"`},
		"Group":       {"an older kind of package", map[string]string{configuration: "apiVersion: meta.pkg.crossplane.io/v1alpha1\nkind: Provider\n"}, nil, "its apiVersion is"},
		"Chart":       {"not a chart", map[string]string{"package/charts/runtime/Chart.yaml": "apiVersion: v2\nname: runtime\nversion: one\n"}, nil, "cannot load chart runtime"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options(tree(t, tc.change))
			if tc.options != nil {
				tc.options(&o)
			}
			_, err := All(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error that says %q, got: %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestPushSaysWhereItCouldNot(t *testing.T) {
	o := options(tree(t, nil))
	o.Registry = "127.0.0.1:1"
	_, err := PushAll(t.Context(), o)
	if want := "cannot push 127.0.0.1:1/steading-dev/devops:v0.1.0"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want an error that says %q, got: %v", want, err)
	}
}

// What is checked in can be built, and the chart that is pulled renders as the one that is checked in.
func TestOurOwnTreeBuilds(t *testing.T) {
	o := options("../..")
	o.Registry, o.External = serve(t), true
	a := map[string]Artifact{}
	names, err := packageNames(o.RepoDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if a[n], err = Package(t.Context(), o, n); err != nil {
			t.Error(err)
		}
	}
	for _, n := range []string{"configuration-steading", "function-steading", "provider-forgejo", "provider-runtime"} {
		if a[n].Digest == "" {
			t.Fatalf("package %s was not built", n)
		}
		if err := Push(t.Context(), a[n]); err != nil {
			t.Fatal(err)
		}
		p := parse(t, packageYAML(t, pull(t, a[n].Pinned(), amd64)))
		if len(p.GetObjects()) == 0 && n != "function-steading" {
			t.Errorf("package %s has no objects", n)
		}
	}
	c, err := Chart(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := Push(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	got := pulledChart(t, c)
	want, err := charts.Runtime()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{"tenant": "acme", "environment": "dev", "version": "1.4.2", "image": a["function-steading"].Tagged()}
	render := func(c *chart.Chart) []*unstructured.Unstructured {
		objects, err := charts.Render(c, "acme-devops", "acme-dev", values)
		if err != nil {
			t.Fatal(err)
		}
		return objects
	}
	if diff := cmp.Diff(render(want), render(got)); diff != "" {
		t.Errorf("-checked in, +pulled:\n%s", diff)
	}
}

func TestSave(t *testing.T) {
	o := options(tree(t, nil))
	o.External = true
	a, err := All(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	for _, one := range a.All() {
		if err := Save(one, dir); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Name())
	}
	want := []string{
		"configuration-test-v0.1.0-linux-amd64.xpkg", "devops-v0.1.0-linux-amd64.tar", "function-test-v0.1.0-linux-amd64.xpkg",
		"provider-test-v0.1.0-linux-amd64.xpkg", "runtime-1.2.3_a.tgz", "steading-0.1.0.tgz",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
