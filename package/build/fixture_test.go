package build

import (
	"archive/tar"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// serve a registry for the test, and return its host.
func serve(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.test.steading.dev
`

// tree writes a small source tree shaped like ours, with files changed or, when empty, left out.
func tree(t *testing.T, change map[string]string) string {
	t.Helper()
	meta := func(kind, name, more string) string {
		return "apiVersion: meta.pkg.crossplane.io/v1\nkind: " + kind + "\nmetadata:\n  name: " + name + "\nspec:\n  crossplane:\n    version: \">=v2.4.0\"\n" + more
	}
	const command = "package main\n\nfunc main() {}\n"
	files := map[string]string{
		"go.mod":                        "module example.org/tree\n\ngo 1.26\n",
		"package/images/devops/main.go": command,
		"functions/cmd/main.go":         command,
		"providers/test/cmd/main.go":    "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println() }\n",

		"package/charts/runtime/Chart.yaml":          "apiVersion: v2\nname: runtime\nversion: 1.2.3+a\n",
		"package/charts/runtime/templates/it.yaml":   "kind: It\n",
		"package/charts/runtime/templates/it.yaml~":  "an editor's",
		"package/function-test/crossplane.yaml":      meta("Function", "function-test", "  capabilities:\n  - composition\n"),
		"package/provider-test/crossplane.yaml":      meta("Provider", "provider-test", ""),
		"package/provider-test/crds/things.yaml":     crd,
		"package/configuration-test/crossplane.yaml": meta("Configuration", "configuration-test", "  dependsOn:\n  - apiVersion: pkg.crossplane.io/v1\n    kind: Provider\n    package: ghcr.io/steading-dev/provider-test\n    version: \">=v0.0.0\"\n  - apiVersion: pkg.crossplane.io/v1\n    kind: Function\n    package: xpkg.example.org/other/function-auto-ready\n    version: v1.0.0\n"),
		"xrds/tests.yaml":                            "apiVersion: apiextensions.crossplane.io/v1\nkind: CompositeResourceDefinition\nmetadata:\n  name: tests.test.steading.dev\n",
		"compositions/test.yaml":                     "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata:\n  name: test\n",
	}
	for name, content := range change {
		files[name] = content
	}
	dir := t.TempDir()
	for name, content := range files {
		if content == "" {
			continue
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		// Files that were touched at other times are the same files.
		if err := os.Chtimes(file, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func options(dir string) Options {
	return Options{RepoDir: dir, Registry: "127.0.0.1:5000", Repository: "steading-dev", Version: "v0.1.0", Platforms: []string{"linux/amd64"}}
}

// pull what a registry has for the platform.
func pull(t *testing.T, ref string, p v1.Platform) v1.Image {
	t.Helper()
	r, err := name.ParseReference(ref, name.StrictValidation)
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(r, remote.WithPlatform(p), remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// contents of a tar stream by name.
func contents(t *testing.T, r io.ReadCloser) map[string]*tar.Header {
	t.Helper()
	defer r.Close() //nolint:errcheck // Only read.
	out := map[string]*tar.Header{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = h
	}
}

// packageYAML reads an image the way Crossplane does: the file package.yaml of the layer that is annotated as the base.
func packageYAML(t *testing.T, img v1.Image) string {
	t.Helper()
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range m.Layers {
		if d.Annotations["io.crossplane.xpkg"] != "base" {
			continue
		}
		if c.Config.Labels["io.crossplane.xpkg:"+d.Digest.String()] != "base" {
			t.Errorf("no label says that layer %s is the base: %v", d.Digest, c.Config.Labels)
		}
		l, err := img.LayerByDigest(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close() //nolint:errcheck // Only read.
		tr := tar.NewReader(r)
		if h, err := tr.Next(); err != nil || h.Name != "package.yaml" {
			t.Fatalf("the layer does not hold package.yaml: %v, %v", h, err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	t.Fatal("no layer is annotated as the base")
	return ""
}
