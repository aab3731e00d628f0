package build

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/package/charts"
)

// Media types of a Helm chart in an OCI registry.
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// folder of the charts in the source tree, of those of components in it, and of what is installed on a control plane.
const (
	chartFolder      = "package/charts"
	installFolder    = "cluster/install"
	componentCharts  = "components"
	runtimeChartName = "runtime"
)

// Chart packages the runtime chart the way helm push does. Its tag is the chart's own version.
func Chart(o Options) (Artifact, error) { return packageChart(o, runtimeChartName, RuntimeChart) }

// Components packages the charts that environments may have beside the runtime, by name.
func Components(o Options) ([]Artifact, error) {
	folders, err := os.ReadDir(filepath.Join(o.RepoDir, chartFolder, componentCharts))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the charts of components: %w", err)
	}
	var all []Artifact
	for _, f := range folders {
		a, err := packageChart(o, path.Join(componentCharts, f.Name()), path.Join(ComponentCharts, f.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// publicRegistry is what the source tree names as the place of our packages.
const publicRegistry = "ghcr.io/steading-dev"

// InstallChart packages what a control plane needs besides the packages, at their version and with this build's registry as
// the default of its values. Go files and what else is not the chart's are kept out by its .helmignore.
func InstallChart(o Options) (Artifact, error) {
	o, err := o.complete()
	if err != nil {
		return Artifact{}, err
	}
	o.progress("Packaging chart " + installFolder)
	c, err := loader.LoadDir(filepath.Join(o.RepoDir, installFolder))
	if err != nil {
		return Artifact{}, fmt.Errorf("cannot load the chart in %s: %w", installFolder, err)
	}
	files := make([]*loader.BufferedFile, 0, len(c.Raw))
	for _, f := range c.Raw {
		data := f.Data
		switch f.Name {
		case chartutil.ValuesfileName:
			data = bytes.ReplaceAll(data, []byte(publicRegistry), []byte(o.path()))
		case chartutil.ChartfileName:
			if data, err = o.versioned(*c.Metadata); err != nil {
				return Artifact{}, err
			}
		}
		files = append(files, &loader.BufferedFile{Name: f.Name, Data: data})
	}
	slices.SortFunc(files, func(a, b *loader.BufferedFile) int { return strings.Compare(a.Name, b.Name) })
	return o.packageFiles(c.Metadata.Name, SteadingChart, files)
}

// versioned is the file with a chart's metadata, at this build's version: the chart's own has no v in front.
func (o Options) versioned(m chart.Metadata) ([]byte, error) {
	m.Version, m.AppVersion = strings.TrimPrefix(o.Version, "v"), o.Version
	y, err := yaml.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("cannot give chart %s version %s: %w", m.Name, m.Version, err)
	}
	return y, nil
}

// packageChart in a folder, for a repository.
func packageChart(o Options, folder, repository string) (Artifact, error) {
	o, err := o.complete()
	if err != nil {
		return Artifact{}, err
	}
	o.progress("Packaging chart " + folder)
	files, err := charts.Files(os.DirFS(filepath.Join(o.RepoDir, chartFolder)), folder)
	if err != nil {
		return Artifact{}, err
	}
	return o.packageFiles(folder, repository, files)
}

// packageFiles of a chart, sorted by name, for a repository.
func (o Options) packageFiles(name, repository string, files []*loader.BufferedFile) (Artifact, error) {
	c, err := loader.LoadFiles(files)
	if err != nil {
		return Artifact{}, fmt.Errorf("cannot load chart %s: %w", name, err)
	}
	tgz, err := chartArchive(c.Name(), files)
	if err != nil {
		return Artifact{}, err
	}
	img, err := chartImage(c.Metadata, tgz)
	if err != nil {
		return Artifact{}, err
	}
	// A tag has no plus. Helm writes and reads it like this.
	return o.artifact(repository, []string{strings.ReplaceAll(c.Metadata.Version, "+", "_")}, img)
}

// chartArchive is a chart's package. Chart.yaml comes first since files are sorted.
func chartArchive(name string, files []*loader.BufferedFile) ([]byte, error) {
	entries := make([]entry, 0, len(files))
	for _, f := range files {
		entries = append(entries, entry{name: name + "/" + f.Name, mode: 0o644, content: f.Data})
	}
	t, err := archive(entries)
	if err != nil {
		return nil, err
	}
	b := &bytes.Buffer{}
	w := gzip.NewWriter(b)
	if _, err := w.Write(t); err != nil {
		return nil, fmt.Errorf("cannot compress chart %s: %w", name, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot compress chart %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// chartImage is an image whose only layer is the chart's package and whose config is the chart's metadata.
func chartImage(m *chart.Metadata, tgz []byte) (v1.Image, error) {
	config, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("cannot package chart %s: %w", m.Name, err)
	}
	c := &chartCore{config: config, content: static.NewLayer(tgz, chartContent)}
	configLayer := static.NewLayer(config, chartConfig)
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: map[string]string{
		"org.opencontainers.image.title":       m.Name,
		"org.opencontainers.image.version":     m.Version,
		"org.opencontainers.image.description": m.Description,
		"org.opencontainers.image.url":         m.Home,
		"org.opencontainers.image.source":      sourceURL,
	}}
	d, err := partial.Descriptor(configLayer)
	if err != nil {
		return nil, fmt.Errorf("cannot package chart %s: %w", m.Name, err)
	}
	manifest.Config = *d
	if d, err = partial.Descriptor(c.content); err != nil {
		return nil, fmt.Errorf("cannot package chart %s: %w", m.Name, err)
	}
	manifest.Layers = []v1.Descriptor{*d}
	if c.manifest, err = json.Marshal(manifest); err != nil {
		return nil, fmt.Errorf("cannot package chart %s: %w", m.Name, err)
	}
	img, err := partial.CompressedToImage(c)
	if err != nil {
		return nil, fmt.Errorf("cannot package chart %s: %w", m.Name, err)
	}
	return img, nil
}

// chartCore is what an image with a foreign config is made of.
type chartCore struct {
	config, manifest []byte
	content          v1.Layer
}

func (c *chartCore) RawConfigFile() ([]byte, error)                         { return c.config, nil }
func (c *chartCore) RawManifest() ([]byte, error)                           { return c.manifest, nil }
func (c *chartCore) MediaType() (types.MediaType, error)                    { return types.OCIManifestSchema1, nil }
func (c *chartCore) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return c.content, nil }
