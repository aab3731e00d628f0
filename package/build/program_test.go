package build

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestProgramImageHasTheProgramAndItsFolders(t *testing.T) {
	binary := program(t)
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "deep", "a.yaml"), []byte("kind: A\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := ProgramImage(serve(t)+"/below", Program{Name: "it", File: binary, Folders: map[string]string{"/crds": folder}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Push(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(a.Pinned())
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/usr/local/bin/it"}, c.Config.Entrypoint); diff != "" {
		t.Errorf("entrypoint: -want, +got:\n%s", diff)
	}
	if got := string(file(t, img, "crds/deep/a.yaml")); got != "kind: A\n" {
		t.Errorf("the folder's file is %q", got)
	}
	if want, err := os.ReadFile(binary); err != nil || !bytes.Equal(file(t, img, "usr/local/bin/it"), want) {
		t.Errorf("the program is another one: %v", err)
	}
}

func TestProgramImageRefusesWhatCannotRunInIt(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec something else entirely\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ file, want string }{
		"a script":           {file: script, want: "bad magic number"},
		"nothing":            {file: script + "-not", want: "no such file"},
		"dynamically linked": {file: "/bin/sh", want: "CGO_ENABLED=0"},
	}
	for what, tc := range cases {
		t.Run(what, func(t *testing.T) {
			_, err := ProgramImage("127.0.0.1:1/below", Program{Name: "it", File: tc.file})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// program that is linked statically.
func program(t *testing.T) string {
	t.Helper()
	b, err := binary(context.WithoutCancel(t.Context()), tree(t, nil), "./functions/cmd", v1.Platform{OS: "linux", Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
