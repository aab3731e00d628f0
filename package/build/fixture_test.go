package build

import (
	"archive/tar"
	"bytes"
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
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	helm "helm.sh/helm/v3/pkg/registry"
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

// described is what every package says about itself.
const described = "  annotations:\n    meta.crossplane.io/maintainer: a\n    meta.crossplane.io/source: b\n    meta.crossplane.io/license: c\n    meta.crossplane.io/description: d\n"

// pipeline of a function of ours and of one that is not.
const pipeline = "spec:\n  pipeline:\n  - step: compose\n    functionRef:\n      name: function-test\n  - step: ready\n    functionRef:\n      name: function-auto-ready\n"

// tree writes a small source tree shaped like ours, with files changed or, when empty, left out.
func tree(t *testing.T, change map[string]string) string {
	t.Helper()
	meta := func(kind, name, more string) string {
		return "apiVersion: meta.pkg.crossplane.io/v1\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n" + described + "spec:\n  crossplane:\n    version: \">=v2.4.0\"\n" + more
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
		"cluster/install/.helmignore":                "*.go\n",
		"cluster/install/Chart.yaml":                 "apiVersion: v2\nname: steading\ndescription: What is installed.\nversion: 0.2.0\nappVersion: v0.2.0\n",
		"cluster/install/doc.go":                     "package install\n",
		"cluster/install/values.yaml":                "# Where packages are.\nregistry: ghcr.io/steading-dev\n",
		"package/function-test/README.md":            "# Function\n",
		"package/provider-test/README.md":            "# Provider\n",
		"package/configuration-test/README.md":       "# Configuration\n",
		"package/provider-test/examples/thing.yaml":  "# What it is for.\nkind: Thing\n",
		"cluster/examples/10.yaml":                   "kind: Tenant\n",
		"cluster/examples/20.yaml":                   "---\nkind: Environment\n",
		"package/function-test/crossplane.yaml":      meta("Function", "function-test", "  capabilities:\n  - composition\n"),
		"package/provider-test/crossplane.yaml":      meta("Provider", "provider-test", ""),
		"package/provider-test/crds/things.yaml":     crd,
		"package/configuration-test/crossplane.yaml": meta("Configuration", "configuration-test", "  dependsOn:\n  - apiVersion: pkg.crossplane.io/v1\n    kind: Provider\n    package: ghcr.io/steading-dev/provider-test\n    version: \">=v0.0.0\"\n  - apiVersion: pkg.crossplane.io/v1\n    kind: Function\n    package: xpkg.example.org/other/function-auto-ready\n    version: v1.0.0\n"),
		"xrds/tests.yaml":                            "apiVersion: apiextensions.crossplane.io/v1\nkind: CompositeResourceDefinition\nmetadata:\n  name: tests.test.steading.dev\n",
		"compositions/test.yaml":                     "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata:\n  name: test\n" + pipeline,
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

// pulledChart is a chart that was pushed, as Helm's own client pulls it.
func pulledChart(t *testing.T, a Artifact) *chart.Chart {
	t.Helper()
	client, err := helm.NewClient(helm.ClientOptPlainHTTP())
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := client.Pull(a.Tagged())
	if err != nil {
		t.Fatal(err)
	}
	c, err := loader.LoadArchive(bytes.NewReader(pulled.Chart.Data))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// entries of all layers of an image but those that a package adds to its runtime.
func entries(t *testing.T, img v1.Image, each func(*tar.Header, io.Reader)) {
	t.Helper()
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range m.Layers {
		if d.Annotations["io.crossplane.xpkg"] != "" {
			continue
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
		for tr := tar.NewReader(r); ; {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			each(h, tr)
		}
	}
}

// files of an image's runtime, with their modes. All were made at the same time.
func files(t *testing.T, img v1.Image) map[string]int64 {
	t.Helper()
	modes := map[string]int64{}
	entries(t, img, func(h *tar.Header, _ io.Reader) {
		modes[h.Name] = h.Mode
		if !h.ModTime.Equal(epoch) {
			t.Errorf("%s was made at %s", h.Name, h.ModTime)
		}
	})
	return modes
}

// file of an image's runtime.
func file(t *testing.T, img v1.Image, name string) []byte {
	t.Helper()
	var found []byte
	entries(t, img, func(h *tar.Header, r io.Reader) {
		if h.Name != name {
			return
		}
		var err error
		if found, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	})
	if found == nil {
		t.Fatalf("the image has no %s", name)
	}
	return found
}

// packageYAML reads an image the way Crossplane does: the file package.yaml of the layer that is annotated as the base.
func packageYAML(t *testing.T, img v1.Image) string {
	t.Helper()
	return annotated(t, img, "base", "package.yaml")
}

// annotated is the file of the layer that is annotated as kind.
func annotated(t *testing.T, img v1.Image, kind, file string) string {
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
		if d.Annotations["io.crossplane.xpkg"] != kind {
			continue
		}
		if got := c.Config.Labels["io.crossplane.xpkg:"+d.Digest.String()]; got != kind {
			t.Errorf("the label of layer %s is %q, want %q: %v", d.Digest, got, kind, c.Config.Labels)
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
		for tr := tar.NewReader(r); ; {
			h, err := tr.Next()
			if err != nil {
				t.Fatalf("the layer does not hold %s: %v", file, err)
			}
			if h.Name != file {
				continue
			}
			b, err := io.ReadAll(tr)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
	}
	t.Fatalf("no layer is annotated as %s", kind)
	return ""
}
