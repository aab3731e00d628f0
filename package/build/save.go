package build

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Save an artifact to a folder, for where no registry can be reached: the chart as the .tgz that Helm takes, a package
// as the .xpkg that crossplane xpkg push takes, the image as the .tar that docker load takes. Those of several platforms
// become a file for each.
func Save(a Artifact, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: what is released is for everybody to read.
		return fmt.Errorf("cannot save %s: %w", a.Repository, err)
	}
	images, err := a.images()
	if err != nil {
		return fmt.Errorf("cannot save %s: %w", a.Repository, err)
	}
	for _, img := range images {
		if err := a.save(img, dir); err != nil {
			return fmt.Errorf("cannot save %s: %w", a.Repository, err)
		}
	}
	return nil
}

// images of all platforms.
func (a Artifact) images() ([]v1.Image, error) {
	switch c := a.content.(type) {
	case v1.Image:
		return []v1.Image{c}, nil
	case v1.ImageIndex:
		m, err := c.IndexManifest()
		if err != nil {
			return nil, err
		}
		var out []v1.Image
		for _, d := range m.Manifests {
			img, err := c.Image(d.Digest)
			if err != nil {
				return nil, err
			}
			out = append(out, img)
		}
		return out, nil
	}
	return nil, errors.New("it is neither an image nor an index")
}

func (a Artifact) save(img v1.Image, dir string) error {
	file := filepath.Join(dir, path.Base(a.Repository)+"-"+a.Tags[0])
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	t, err := layers[0].MediaType()
	if err != nil {
		return err
	}
	if t == chartContent {
		return saveChart(layers[0], file+".tgz")
	}
	c, err := img.ConfigFile()
	if err != nil {
		return err
	}
	suffix := ".tar"
	for label := range c.Config.Labels {
		if strings.HasPrefix(label, xpkgAnnotation+":") {
			suffix = ".xpkg"
		}
	}
	ref, err := name.NewTag(a.Tagged(), name.StrictValidation)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(file+"-"+c.OS+"-"+c.Architecture+suffix, ref, img)
}

func saveChart(l v1.Layer, file string) error {
	r, err := l.Compressed()
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // Only read.
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644) //nolint:gosec // G306: what is released is for everybody to read.
}
