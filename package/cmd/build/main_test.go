package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steading-dev/steading/package/build"
)

func TestRegistryIsHostAndPath(t *testing.T) {
	for registry, want := range map[string][2]string{
		"ghcr.io/steading-dev":          {"ghcr.io", "steading-dev"},
		"10.0.0.7:5000/mirrors/of/ours": {"10.0.0.7:5000", "mirrors/of/ours"},
		"steading.internal":             {"steading.internal", ""},
	} {
		o := (&command{Registry: registry}).options()
		if got := [2]string{o.Registry, o.Repository}; got != want {
			t.Errorf("%s: got %q, want %q", registry, got, want)
		}
	}
}

func TestWhatWasBuiltIsShown(t *testing.T) {
	a := &build.Artifacts{
		Image:    build.Artifact{Repository: "r.io/s/devops", Tags: []string{"1.4.2", "1.4.3"}, Digest: "sha256:aa", Size: 3 << 19},
		Packages: map[string]build.Artifact{"function-x": {Repository: "r.io/s/function-x", Tags: []string{"v1.0.0"}, Digest: "sha256:bb", Size: 40 << 20}},
		Install:  build.Artifact{Repository: "r.io/s/charts/steading", Tags: []string{"0.1.0"}, Digest: "sha256:cc"},
		Chart:    build.Artifact{Repository: "r.io/s/charts/runtime", Tags: []string{"0.1.0"}, Digest: "sha256:dd"},
	}
	b := &strings.Builder{}
	if err := show(b, a); err != nil {
		t.Fatal(err)
	}
	want := `NAME                    VERSION      DIGEST     SIZE
r.io/s/devops           1.4.2,1.4.3  sha256:aa  1.5 MiB
r.io/s/charts/steading  0.1.0        sha256:cc  0.0 MiB
r.io/s/charts/runtime   0.1.0        sha256:dd  0.0 MiB
r.io/s/function-x       v1.0.0       sha256:bb  40.0 MiB
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
