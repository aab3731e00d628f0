package build

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What Crossplane finds a package's objects by: the file package.yaml of the layer that is annotated as base. Examples are
// for people and their tools. A label of the image's config says the same of a layer's digest, for tarballs, which have no
// annotations.
const (
	xpkgAnnotation   = "io.crossplane.xpkg"
	xpkgBase         = "base"
	xpkgFile         = "package.yaml"
	xpkgExamples     = "upbound"
	xpkgExamplesFile = ".up/examples.yaml"
)

// packageNames are the folders below package that hold a package's metadata.
func packageNames(repoDir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(repoDir, "package", "*", metadataFile))
	if err != nil {
		return nil, fmt.Errorf("cannot look for packages: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("cannot find packages: no %s in any folder of %s", metadataFile, filepath.Join(repoDir, "package"))
	}
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, filepath.Base(filepath.Dir(f)))
	}
	return names, nil
}

// Package builds the package whose metadata is in the folder called name: for each platform an image with the package's
// objects and, unless o.External, its runtime.
func Package(ctx context.Context, o Options, name string) (Artifact, error) {
	o, err := o.complete()
	if err != nil {
		return Artifact{}, err
	}
	stream, m, err := readPackage(o, name)
	if err != nil {
		return Artifact{}, err
	}
	parts, err := packageParts(o, m, stream)
	if err != nil {
		return Artifact{}, fmt.Errorf("cannot build package %s: %w", name, err)
	}
	content, err := o.forPlatforms(func(p v1.Platform) (v1.Image, error) {
		o.progress("Building package " + name + " for " + p.String())
		base, err := packageBase(ctx, o, m, p)
		if err != nil {
			return nil, err
		}
		return appendParts(base, parts)
	})
	if err != nil {
		return Artifact{}, fmt.Errorf("cannot build package %s: %w", name, err)
	}
	return o.artifact(name, []string{o.Version}, content)
}

// packageBase is the image of a package's runtime, if it brings one.
func packageBase(ctx context.Context, o Options, m metadata, p v1.Platform) (v1.Image, error) {
	command := m.command()
	if o.External || command == "" {
		return platformImage(p, v1.Config{})
	}
	if _, err := os.Stat(filepath.Join(o.RepoDir, command)); err != nil {
		return nil, fmt.Errorf("its command should be %s: %w", command, err)
	}
	return runtimeImage(ctx, o.RepoDir, "./"+command, m.name(), p)
}

// A part of a package is a layer, and what is in it.
type part struct {
	kind  string
	layer v1.Layer
}

// packageParts are the package's objects, and its examples if there are any.
func packageParts(o Options, m metadata, stream []byte) ([]part, error) {
	objects, err := layer(entry{name: xpkgFile, mode: 0o644, content: stream})
	if err != nil {
		return nil, err
	}
	all := []part{{kind: xpkgBase, layer: objects}}
	examples, err := readExamples(filepath.Join(o.RepoDir, m.examples()))
	if err != nil || len(examples) == 0 {
		return all, err
	}
	l, err := layer(entry{name: path.Dir(xpkgExamplesFile) + "/", mode: 0o755}, entry{name: xpkgExamplesFile, mode: 0o644, content: examples})
	return append(all, part{kind: xpkgExamples, layer: l}), err
}

// readExamples as a stream, as they are written: what their comments say is half of what an example is for.
func readExamples(dir string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	b := &bytes.Buffer{}
	for _, f := range files {
		text, err := os.ReadFile(f) //nolint:gosec // G304: a file of the source tree.
		if err != nil {
			return nil, fmt.Errorf("cannot read an example: %w", err)
		}
		b.WriteString("---\n")
		b.Write(bytes.TrimPrefix(text, []byte("---\n")))
	}
	return b.Bytes(), nil
}

func appendParts(base v1.Image, parts []part) (v1.Image, error) {
	labels := map[string]string{}
	img := base
	for _, p := range parts {
		digest, err := p.layer.Digest()
		if err != nil {
			return nil, err
		}
		labels[xpkgAnnotation+":"+digest.String()] = p.kind
		img, err = mutate.Append(img, mutate.Addendum{Layer: p.layer, MediaType: types.OCILayer, Annotations: map[string]string{xpkgAnnotation: p.kind}})
		if err != nil {
			return nil, err
		}
	}
	f, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	f = f.DeepCopy()
	maps.Copy(f.Config.Labels, labels)
	return mutate.ConfigFile(img, f)
}
