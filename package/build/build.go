// Package build makes what Steading is installed from: the canonical runtime image, the runtime chart, and the packages
// that Crossplane installs. It needs Go and a registry, no docker and no base images, and makes the same bytes from the
// same sources wherever it runs.
package build

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Options say what to build, from where, and what to call it.
type Options struct {
	// RepoDir is the root of Steading's source tree.
	RepoDir string
	// Registry to push to, host with port. It is spoken to by plain HTTP on loopback addresses.
	Registry string
	// Repository is the path in the registry below which everything is: steading-dev.
	Repository string
	// Version of the packages, of the chart that is installed with them, and of the canonical image unless ImageTags are
	// given: v0.1.0.
	Version string
	// ImageTags of the canonical image, all of the same build.
	ImageTags []string
	// Platforms to build for: linux/amd64, linux/arm64. Several make an index. Default: linux on this machine's
	// architecture.
	Platforms []string
	// External leaves the binaries out of the packages, for a Crossplane that runs with --package-runtime=External.
	External bool
	// Progress is told each thing that is being built. May be nil.
	Progress func(what string)
}

// Names of what is built, below Options.Repository. Packages are called as their folders.
const (
	// DevopsImage is the canonical runtime image.
	DevopsImage = "devops"
	// RuntimeChart is the chart that environments are deployed from.
	RuntimeChart = "charts/runtime"
	// SteadingChart is the chart of what a control plane needs besides the packages.
	SteadingChart = "charts/steading"
	// ComponentCharts is below which the charts of components are, a repository each.
	ComponentCharts = "components"
)

// An Artifact is something built that a registry can hold.
type Artifact struct {
	// Repository with registry, without tag: ghcr.io/steading-dev/devops.
	Repository string
	// Tags it gets.
	Tags []string
	// Digest of its manifest or index: sha256:...
	Digest string
	// Size of what a registry keeps of it, in bytes: configs and layers, of all platforms, each counted once.
	Size int64

	content remote.Taggable
}

// Pinned is the artifact's reference by digest.
func (a Artifact) Pinned() string { return a.Repository + "@" + a.Digest }

// Tagged is the artifact's reference by its first tag.
func (a Artifact) Tagged() string { return a.Repository + ":" + a.Tags[0] }

// Artifacts are all that Steading is installed from.
type Artifacts struct {
	// Image is the canonical runtime image.
	Image Artifact
	// Install is the chart of what a control plane needs besides the packages. Its first tag is its version.
	Install Artifact
	// Chart is the runtime chart. Its first tag is its version.
	Chart Artifact
	// Components are charts that environments may have beside the runtime.
	Components []Artifact
	// Packages for Crossplane, by name: function-steading, provider-runtime.
	Packages map[string]Artifact
}

// All artifacts in the order in which they are pushed.
func (a *Artifacts) All() []Artifact {
	all := append([]Artifact{a.Image, a.Install, a.Chart}, a.Components...)
	names := make([]string, 0, len(a.Packages))
	for n := range a.Packages {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		all = append(all, a.Packages[n])
	}
	return all
}

// PushAll builds all artifacts and pushes them.
func PushAll(ctx context.Context, o Options) (*Artifacts, error) {
	a, err := All(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, one := range a.All() {
		o.progress("Pushing " + one.Tagged())
		if err := Push(ctx, one); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// All builds all artifacts and pushes none.
func All(ctx context.Context, o Options) (*Artifacts, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	a := &Artifacts{Packages: map[string]Artifact{}}
	if a.Image, err = Image(ctx, o); err != nil {
		return nil, err
	}
	if a.Install, err = InstallChart(o); err != nil {
		return nil, err
	}
	if a.Chart, err = Chart(o); err != nil {
		return nil, err
	}
	if a.Components, err = Components(o); err != nil {
		return nil, err
	}
	names, err := packageNames(o.RepoDir)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if a.Packages[n], err = Package(ctx, o, n); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// version is what Crossplane resolves packages by, as a tag.
var version = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// complete the options with their defaults, and check them.
func (o Options) complete() (Options, error) {
	if !version.MatchString(o.Version) {
		return o, fmt.Errorf("cannot build version %q: give a semantic version with a v in front, such as v0.1.0", o.Version)
	}
	if _, err := name.NewRepository(path.Join(o.Registry, o.Repository, DevopsImage), name.StrictValidation); err != nil {
		return o, fmt.Errorf("cannot build for registry %q and repository %q: %w", o.Registry, o.Repository, err)
	}
	dir, err := filepath.Abs(o.RepoDir)
	if err != nil {
		return o, fmt.Errorf("cannot find the source tree: %w", err)
	}
	o.RepoDir = dir
	if len(o.ImageTags) == 0 {
		o.ImageTags = []string{o.Version}
	}
	if len(o.Platforms) == 0 {
		o.Platforms = []string{"linux/" + runtime.GOARCH}
	}
	return o, nil
}

func (o Options) platforms() ([]v1.Platform, error) {
	out := make([]v1.Platform, 0, len(o.Platforms))
	for _, s := range o.Platforms {
		p, err := v1.ParsePlatform(s)
		if err != nil || p.OS != "linux" || p.Architecture == "" {
			return nil, fmt.Errorf("cannot build for platform %q: give linux and an architecture, such as linux/amd64", s)
		}
		out = append(out, *p)
	}
	return out, nil
}

func (o Options) progress(what string) {
	if o.Progress != nil {
		o.Progress(what)
	}
}

// artifact in the repository called name, below o's.
func (o Options) artifact(name string, tags []string, content remote.Taggable) (Artifact, error) {
	d, ok := content.(interface{ Digest() (v1.Hash, error) })
	if !ok {
		return Artifact{}, fmt.Errorf("cannot build %s: it has no digest", name)
	}
	digest, err := d.Digest()
	if err != nil {
		return Artifact{}, fmt.Errorf("cannot build %s: %w", name, err)
	}
	a := Artifact{Repository: path.Join(o.path(), name), Tags: tags, Digest: digest.String(), content: content}
	if a.Size, err = a.size(); err != nil {
		return Artifact{}, fmt.Errorf("cannot tell the size of %s: %w", name, err)
	}
	return a, nil
}

// size of all blobs.
func (a Artifact) size() (int64, error) {
	images, err := a.images()
	if err != nil {
		return 0, err
	}
	blobs := map[v1.Hash]int64{}
	for _, img := range images {
		m, err := img.Manifest()
		if err != nil {
			return 0, err
		}
		blobs[m.Config.Digest] = m.Config.Size
		for _, l := range m.Layers {
			blobs[l.Digest] = l.Size
		}
	}
	total := int64(0)
	for _, size := range blobs {
		total += size
	}
	return total, nil
}
