package platform

import (
	"context"
	"fmt"

	"github.com/steading-dev/steading/package/build"
)

// packageVersion of what is built from a working tree: newer than all released.
const packageVersion = "v0.999.0"

// pushed are references to what the registry holds.
type pushed struct {
	function, provider            string // by digest, so that any change is a new revision
	chartRepository, chartVersion string
	image                         string // without tag
}

// publish builds the packages, the runtime chart and the canonical image, and
// pushes them to the registry.
func (p *Platform) publish(ctx context.Context) (pushed, error) {
	p.say("building packages, chart and image")
	a, err := build.PushAll(ctx, build.Options{
		RepoDir:    p.source,
		Registry:   p.Registry.Host(),
		Repository: "steading-dev",
		Version:    packageVersion,
		ImageTags:  p.options.ImageTags,
		External:   true,
	})
	if err != nil {
		return pushed{}, fmt.Errorf("cannot publish: %w", err)
	}
	for _, name := range []string{Function, Provider} {
		if _, ok := a.Packages[name]; !ok {
			return pushed{}, fmt.Errorf("cannot publish: there is no package %s", name)
		}
	}
	return pushed{
		function:        a.Packages[Function].Pinned(),
		provider:        a.Packages[Provider].Pinned(),
		chartRepository: a.Chart.Repository,
		chartVersion:    a.Chart.Tags[0],
		image:           a.Image.Repository,
	}, nil
}
