package platform

import (
	"context"
	"fmt"
	"path"

	"github.com/steading-dev/steading/package/build"
)

// packageVersion of what is built from a working tree: newer than all released.
const packageVersion = "v0.999.0"

// repository in the registry below which everything is.
const repository = "steading-dev"

// pushed are references to what the registry holds.
type pushed struct {
	packages                      map[string]string // by digest, so that any change is a new revision
	chartRepository, chartVersion string
	components                    string // prefix of the charts of components
	image                         string // without tag
}

// publish builds the packages, the charts and the canonical image, and pushes
// them to the registry.
func (p *Platform) publish(ctx context.Context) (pushed, error) {
	p.say("building packages, chart and image")
	a, err := build.PushAll(ctx, build.Options{
		RepoDir:    p.source,
		Registry:   p.Registry.Host(),
		Repository: repository,
		Version:    packageVersion,
		ImageTags:  p.options.ImageTags,
		External:   true,
	})
	if err != nil {
		return pushed{}, fmt.Errorf("cannot publish: %w", err)
	}
	packages := map[string]string{}
	for _, name := range Processes() {
		pkg, ok := a.Packages[name]
		if !ok {
			return pushed{}, fmt.Errorf("cannot publish: there is no package %s", name)
		}
		packages[name] = pkg.Pinned()
	}
	return pushed{
		packages:        packages,
		chartRepository: a.Chart.Repository,
		chartVersion:    a.Chart.Tags[0],
		components:      path.Join(p.Registry.Host(), repository, build.ComponentCharts),
		image:           a.Image.Repository,
	}, nil
}
