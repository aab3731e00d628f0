package build

import (
	"context"
	"fmt"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// sourceURL is where images come from.
const sourceURL = "https://github.com/steading-dev/steading"

// Image builds the canonical runtime image.
func Image(ctx context.Context, o Options) (Artifact, error) {
	o, err := o.complete()
	if err != nil {
		return Artifact{}, err
	}
	content, err := o.forPlatforms(func(p v1.Platform) (v1.Image, error) {
		o.progress("Building image " + DevopsImage + " for " + p.String())
		return runtimeImage(ctx, o.RepoDir, "./package/images/devops", DevopsImage, p)
	})
	if err != nil {
		return Artifact{}, err
	}
	return o.artifact(DevopsImage, o.ImageTags, content)
}

// forPlatforms builds an image for each platform: the image if it is one, else an index of them.
func (o Options) forPlatforms(one func(v1.Platform) (v1.Image, error)) (remote.Taggable, error) {
	platforms, err := o.platforms()
	if err != nil {
		return nil, err
	}
	var images []mutate.IndexAddendum
	for _, p := range platforms {
		img, err := one(p)
		if err != nil {
			return nil, err
		}
		images = append(images, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &p}})
	}
	if len(images) == 1 {
		return images[0].Add.(v1.Image), nil //nolint:forcetypeassert // It was put there as one.
	}
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), images...), nil
}

// runtimeImage has a command of the source tree.
func runtimeImage(ctx context.Context, repoDir, pkg, command string, p v1.Platform) (v1.Image, error) {
	b, err := binary(ctx, repoDir, pkg, p)
	if err != nil {
		return nil, err
	}
	return programImage(command, b, p)
}

// programImage has a program and nothing of an operating system but certificates, names and /tmp. What else it is given comes
// after that.
func programImage(command string, program []byte, p v1.Platform, more ...entry) (v1.Image, error) {
	base, err := layer(baseEntries()...)
	if err != nil {
		return nil, err
	}
	entrypoint := path.Join("/usr/local/bin", command)
	bin, err := layer(append([]entry{
		{name: "usr/", mode: 0o755}, {name: "usr/local/", mode: 0o755}, {name: "usr/local/bin/", mode: 0o755},
		{name: entrypoint[1:], mode: 0o755, content: program},
	}, more...)...)
	if err != nil {
		return nil, err
	}
	img, err := platformImage(p, v1.Config{
		Entrypoint: []string{entrypoint},
		User:       fmt.Sprintf("%d:%d", nonRoot, nonRoot),
		WorkingDir: "/",
		Env:        []string{"PATH=/usr/local/bin", "SSL_CERT_FILE=" + certificates, "HOME=" + home},
	})
	if err != nil {
		return nil, err
	}
	img, err = mutate.AppendLayers(img, base, bin)
	if err != nil {
		return nil, fmt.Errorf("cannot make image %s: %w", command, err)
	}
	return img, nil
}

// platformImage is an image without layers.
func platformImage(p v1.Platform, c v1.Config) (v1.Image, error) {
	c.Labels = map[string]string{"org.opencontainers.image.source": sourceURL, "org.opencontainers.image.licenses": "Apache-2.0"}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(img, &v1.ConfigFile{
		OS: p.OS, Architecture: p.Architecture, Variant: p.Variant, Created: v1.Time{Time: epoch}, Config: c,
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make an image: %w", err)
	}
	return img, nil
}
