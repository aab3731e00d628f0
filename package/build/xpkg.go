package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What Crossplane finds a package's objects by: the file package.yaml of the layer with this annotation. A label of the
// image's config says the same of the layer's digest, for tarballs, which have no annotations.
const (
	xpkgAnnotation = "io.crossplane.xpkg"
	xpkgBase       = "base"
	xpkgFile       = "package.yaml"
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
	objects, err := layer(entry{name: xpkgFile, mode: 0o644, content: stream})
	if err != nil {
		return Artifact{}, err
	}
	content, err := o.forPlatforms(func(p v1.Platform) (v1.Image, error) {
		o.progress("Building package " + name + " for " + p.String())
		base, err := packageBase(ctx, o, m, p)
		if err != nil {
			return nil, err
		}
		return appendObjects(base, objects)
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

func appendObjects(base v1.Image, objects v1.Layer) (v1.Image, error) {
	digest, err := objects.Digest()
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(base, mutate.Addendum{Layer: objects, MediaType: types.OCILayer, Annotations: map[string]string{xpkgAnnotation: xpkgBase}})
	if err != nil {
		return nil, err
	}
	f, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	f = f.DeepCopy()
	f.Config.Labels[xpkgAnnotation+":"+digest.String()] = xpkgBase
	return mutate.ConfigFile(img, f)
}
