package crossplane

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/functions/serve"
)

// placeholders of the examples are filled in by make up; any value will do here.
var placeholders = strings.NewReplacer("${EDGE_ADDRESS}", "203.0.113.7:6443", "${EDGE_CA}", "UEVN", "${EDGE_CERTIFICATE}", "UEVN", "${EDGE_KEY}", "UEVN")

// examples of all kinds of ours in the tree, in YAML: those of make up, of packages, and in the documents.
func examples(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"cluster/examples/*.yaml", "package/provider-*/examples/*.yaml"} {
		for _, path := range glob(t, pattern) {
			objects, err := local.ReadObjects(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				all = append(all, ours(t, o)...)
			}
		}
	}
	for _, path := range append(glob(t, "docs/*.md"), filepath.Join(top, "README.md")) {
		all = append(all, inPage(t, path)...)
	}
	return all
}

// manifest of ours in a page: what a person applies, or is shown.
var manifest = regexp.MustCompile(`(?m)^apiVersion: (?:(?:forgejo|runtime)\.)?steading\.dev/v1alpha1\n(?:[ a-z-].*\n)+`)

// substituted by the shell of whoever applies it.
var substituted = regexp.MustCompile(`(server|caBundle): \$\(.*\)`)

func inPage(t *testing.T, path string) (all []string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.FindAllString(string(raw), -1) {
		m = substituted.ReplaceAllStringFunc(m, func(s string) string {
			if strings.HasPrefix(s, "server") {
				return "server: https://203.0.113.7:6443"
			}
			return "caBundle: UEVN"
		})
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(m), &o.Object); err != nil {
			t.Fatalf("%s: %v\n%s", path, err, m)
		}
		all = append(all, ours(t, o)...)
	}
	return all
}

// ours is the object in YAML, if it is of a kind of ours.
func ours(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	if !strings.HasSuffix(o.GroupVersionKind().Group, "steading.dev") {
		return nil
	}
	return []string{placeholders.Replace(inYAML(t, o.Object))}
}

func inYAML(t *testing.T, v any) string {
	t.Helper()
	raw, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(top, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return paths
}

// validate objects with the tool against the definitions of this tree, and return what it says of each.
func validate(t *testing.T, objects string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	// The tool would fetch Crossplane's own kinds from its image, but for this cache.
	cache := t.TempDir()
	if err := os.CopyFS(filepath.Join(cache, "crossplane@v2.4.0"), os.DirFS(built(t).Asset(local.Crossplane, "cluster/crds"))); err != nil {
		t.Fatal(err)
	}
	extensions := strings.Join([]string{filepath.Join(top, "xrds"), filepath.Join(top, "package/provider-forgejo/crds"), filepath.Join(top, "package/provider-runtime/crds")}, ",")
	return crank(t, "", "beta", "validate", extensions, file, "--error-on-missing-schemas", "--cache-dir="+cache, "--crossplane-image=crossplane:v2.4.0")
}

// TestExamplesAreValid by the tool.
func TestExamplesAreValid(t *testing.T) {
	all := examples(t)
	said := validate(t, strings.Join(all, "\n---\n"))
	if n := strings.Count(said, "[✓]"); n != len(all) || n < 20 {
		t.Errorf("%d of %d are valid:\n%s", n, len(all), said)
	}
}

// composedOf is what each kind of claim composes first.
var composedOf = map[string]string{"Tenant": "kind: Home", "Context": "kind: Cluster", "Environment": "kind: Placement", "RunnerPool": "kind: Runner"}

// TestCompositionsRender with the tool, for every example of a claim, and what they render to is valid.
func TestCompositionsRender(t *testing.T) {
	functions := filepath.Join(t.TempDir(), "functions.yaml")
	content := fmt.Sprintf("apiVersion: pkg.crossplane.io/v1\nkind: Function\nmetadata:\n  name: function-steading\n  annotations:\n"+
		"    render.crossplane.io/runtime: Development\n    render.crossplane.io/runtime-development-target: dns:///%s\nspec:\n  package: example.org/function-steading:v1\n", serving(t))
	if err := os.WriteFile(functions, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	eachClaim(t, func(t *testing.T, kind string, claim *unstructured.Unstructured) {
		t.Helper()
		xr := filepath.Join(t.TempDir(), "xr.yaml")
		if err := os.WriteFile(xr, []byte(compositeOf(t, claim)), 0o600); err != nil {
			t.Fatal(err)
		}
		singular := strings.ToLower(kind)
		out := crank(t, "", "render", xr, filepath.Join(top, "compositions", singular+".yaml"), functions, "--xrd="+filepath.Join(top, "xrds", singular+".yaml"), "--include-full-xr")
		if !strings.Contains(out, composedOf[kind]) {
			t.Errorf("it renders no %q:\n%s", composedOf[kind], out)
		}
		validate(t, out)
	})
}

// eachClaim of the examples that is composed, of which there has to be one of each kind.
func eachClaim(t *testing.T, do func(t *testing.T, kind string, claim *unstructured.Unstructured)) {
	t.Helper()
	seen := map[string]bool{}
	for _, example := range examples(t) {
		claim := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(example), &claim.Object); err != nil {
			t.Fatal(err)
		}
		kind := claim.GetKind()
		if composedOf[kind] == "" {
			continue
		}
		seen[kind] = true
		t.Run(kind+" "+claim.GetNamespace()+"/"+claim.GetName(), func(t *testing.T) { do(t, kind, claim) })
	}
	if len(seen) != len(composedOf) {
		t.Errorf("only %v have examples", seen)
	}
}

// compositeOf a claim, as Crossplane makes it.
func compositeOf(t *testing.T, claim *unstructured.Unstructured) string {
	t.Helper()
	xr := claim.DeepCopy()
	xr.SetKind("X" + claim.GetKind())
	xr.SetNamespace("")
	xr.SetName(claim.GetName() + "-abcde")
	xr.SetUID("11111111-2222-3333-4444-555555555555")
	ref := map[string]any{"apiVersion": claim.GetAPIVersion(), "kind": claim.GetKind(), "namespace": claim.GetNamespace(), "name": claim.GetName()}
	if err := unstructured.SetNestedMap(xr.Object, ref, "spec", "claimRef"); err != nil {
		t.Fatal(err)
	}
	return inYAML(t, xr.Object)
}

// serving the function, until the test is over, at the address that is returned.
func serving(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	started, ended := make(chan net.Addr, 1), make(chan error, 1)
	registry := prometheus.NewRegistry()
	go func() {
		ended <- serve.Serve(ctx, serve.NewFunction(serve.Composers(), serve.NewMetrics(registry)), serve.Options{
			Address: "127.0.0.1:0", Insecure: true, Log: slog.New(slog.DiscardHandler), Registry: registry,
			Started: func(a net.Addr) { started <- a },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case a := <-started:
		return a.String()
	case err := <-ended:
		t.Fatal(err)
		return ""
	}
}
