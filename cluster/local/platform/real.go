package platform

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/package/build"
)

// real is whether a real node runs the pods.
func (p *Platform) real() bool { return p.options.Node == local.NodeContainerd }

// startReal starts a plane with a real node, the edge beside it, and installs ourselves as users do.
func (p *Platform) startReal(ctx context.Context) error {
	var err error
	if p.tools, err = local.BuildTools(ctx, p.say, slices.Concat(local.AllTools, local.NodeTools)...); err != nil {
		return err
	}
	p.Plane, err = local.Start(ctx, local.Options{
		Name: p.name, Dir: filepath.Join(p.dir, "plane"), Node: p.options.Node, Crossplane: true, CrossplaneArgs: p.options.CrossplaneArgs, Progress: p.say,
	})
	if err != nil {
		return err
	}
	p.Registry = p.Plane.Registry()
	steps := []func() error{func() error { return p.installPackages(ctx) }}
	if p.options.Edge {
		steps = append(steps, func() error { return p.startEdge(ctx, p.Plane.Address()) })
	}
	if err := together(steps...); err != nil {
		return err
	}
	return p.teachCollector(ctx)
}

// installPackages as docs/install.md says: the chart of cluster/install, then the Configuration, and at last what the operator
// decides. It may be called again: packages of a higher version roll out.
func (p *Platform) installPackages(ctx context.Context) error {
	if same, err := p.sameAsPublished(ctx); err != nil || same {
		return err
	}
	a, err := p.PublishPackages(ctx)
	if err != nil {
		return err
	}
	return p.InstallRelease(ctx, a)
}

// InstallRelease installs the chart and the packages of a version, over what is installed or not.
func (p *Platform) InstallRelease(ctx context.Context, a *build.Artifacts) error {
	if err := p.installChart(ctx, a.Install); err != nil {
		return err
	}
	return p.InstallVersion(ctx, a)
}

// PublishSource publishes another source tree as [Platform.PublishPackages] does, and goes on with that one.
func (p *Platform) PublishSource(ctx context.Context, dir string) (*build.Artifacts, error) {
	p.source = dir
	return p.PublishPackages(ctx)
}
