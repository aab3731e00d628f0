package platform

import (
	"context"
	"fmt"
	"slices"

	"github.com/steading-dev/steading/package/build"
)

// PublishPackages of this source tree under a version higher than all before.
func (p *Platform) PublishPackages(ctx context.Context) (*build.Artifacts, error) {
	p.serial++
	p.say("building packages, charts and image, " + p.version())
	a, err := build.PushAll(ctx, p.buildOptions())
	if err != nil {
		return nil, fmt.Errorf("cannot publish: %w", err)
	}
	p.published = a
	return a, nil
}

// Published is what was published last.
func (p *Platform) Published() *build.Artifacts { return p.published }

// sameAsPublished is whether this source tree makes what was published last, to the byte.
func (p *Platform) sameAsPublished(ctx context.Context) (bool, error) {
	if p.published == nil {
		return false, nil
	}
	p.say("building packages, charts and image, to compare them")
	now, err := build.All(ctx, p.buildOptions())
	if err != nil {
		return false, fmt.Errorf("cannot compare with what was published: %w", err)
	}
	pinned := func(a *build.Artifacts) []string {
		var all []string
		for _, one := range a.All() {
			all = append(all, one.Pinned())
		}
		return all
	}
	return slices.Equal(pinned(now), pinned(p.published)), nil
}

// version of the packages that were published last: newer than all that were released.
func (p *Platform) version() string { return fmt.Sprintf("v0.999.%d", p.serial) }

func (p *Platform) buildOptions() build.Options {
	return build.Options{RepoDir: p.source, Registry: p.Registry.Host(), Repository: repository, Version: p.version(), ImageTags: p.options.ImageTags}
}
