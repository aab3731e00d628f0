package platform

import (
	"context"
	"fmt"
	"path"
	"strings"

	xppkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/package/build"
)

// Configuration is the package that everything else comes with.
const Configuration = "configuration-steading"

// InstallVersion installs published packages by applying their Configuration, or upgrades what is installed to them, and waits
// until they are healthy. A version that has no package of a provider leaves alone what is installed of it.
func (p *Platform) InstallVersion(ctx context.Context, a *build.Artifacts) error {
	p.say("installing " + a.Packages[Configuration].Tagged())
	ours := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration", "metadata": map[string]any{"name": Configuration},
		"spec": map[string]any{"package": a.Packages[Configuration].Tagged()},
	}}
	if err := p.Plane.Apply(ctx, ours); err != nil {
		return err
	}
	dependencies := map[string]xppkgv1.Package{Function: &xppkgv1.Function{}}
	for name := range providers {
		if _, ok := a.Packages[name]; ok {
			dependencies[name] = &xppkgv1.Provider{}
		}
	}
	for name, pkg := range dependencies {
		if err := p.upgrade(ctx, pkg, a.Packages[name]); err != nil {
			return err
		}
	}
	for name, pkg := range dependencies {
		if err := p.Plane.WaitPackage(ctx, pkg, Installed(a.Packages[name]), a.Packages[name].Tagged()); err != nil {
			return err
		}
	}
	if err := p.Plane.WaitPackage(ctx, &xppkgv1.Configuration{}, Configuration, a.Packages[Configuration].Tagged()); err != nil {
		return err
	}
	for name, config := range p.providerConfigs(p.pushedAs(a)) {
		if dependencies[name] == nil {
			continue
		}
		if err := p.Plane.Apply(ctx, config); err != nil {
			return err
		}
	}
	if err := p.waitOffered(ctx); err != nil {
		return err
	}
	p.say("the platform takes claims")
	return nil
}

// upgrade a package that Crossplane has installed as a dependency before, which it leaves alone.
func (p *Platform) upgrade(ctx context.Context, pkg xppkgv1.Package, to build.Artifact) error {
	key := client.ObjectKey{Name: Installed(to)}
	err := p.Plane.Client().Get(ctx, key, pkg)
	if err != nil || pkg.GetSource() == to.Tagged() {
		return client.IgnoreNotFound(err)
	}
	pkg.SetSource(to.Tagged())
	if err := p.Plane.Client().Update(ctx, pkg); err != nil {
		return fmt.Errorf("cannot upgrade package %s: %w", key.Name, err)
	}
	return nil
}

// Installed is what Crossplane calls a package that it installs as a dependency.
func Installed(a build.Artifact) string {
	return strings.ReplaceAll(path.Join(repository, path.Base(a.Repository)), "/", "-")
}

// pushedAs is where things are that are not packages.
func (p *Platform) pushedAs(a *build.Artifacts) pushed {
	return pushed{
		chartRepository: a.Chart.Repository, chartVersion: a.Chart.Tags[0], image: a.Image.Repository,
		components: path.Join(p.Registry.Host(), repository, build.ComponentCharts),
	}
}
