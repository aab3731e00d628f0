package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	xppkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	xppkgv1beta1 "github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	helm "helm.sh/helm/v3/pkg/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/package/build"
)

// Configuration is the package that everything else comes with.
const Configuration = "configuration-steading"

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
	if err := p.installChart(ctx, a.Install); err != nil {
		return err
	}
	return p.InstallVersion(ctx, a)
}

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

// installChart of what packages cannot carry, from the registry.
func (p *Platform) installChart(ctx context.Context, a build.Artifact) error {
	p.say("installing cluster/install by its chart")
	c, err := pullChart(a.Tagged())
	if err != nil {
		return err
	}
	if err := p.Plane.InstallChart(ctx, local.CrossplaneNamespace, "steading", c, nil); err != nil {
		return err
	}
	for process, args := range map[string][]string{Function: p.options.FunctionArgs, Provider: p.options.ProviderArgs} {
		if err := p.runWith(ctx, process, args); err != nil {
			return err
		}
	}
	return nil
}

func pullChart(ref string) (*chart.Chart, error) {
	puller, err := helm.NewClient(helm.ClientOptPlainHTTP())
	if err != nil {
		return nil, fmt.Errorf("cannot pull chart %s: %w", ref, err)
	}
	pulled, err := puller.Pull(ref)
	if err != nil {
		return nil, fmt.Errorf("cannot pull chart %s: %w", ref, err)
	}
	c, err := loader.LoadArchive(bytes.NewReader(pulled.Chart.Data))
	if err != nil {
		return nil, fmt.Errorf("cannot read chart %s: %w", ref, err)
	}
	return c, nil
}

// runWith gives a process arguments that the chart has no value for. Crossplane reads them when it installs the package.
func (p *Platform) runWith(ctx context.Context, process string, args []string) error {
	if len(args) == 0 {
		return nil
	}
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/deploymentTemplate/spec/template/spec/containers/0/args", "value": args}})
	if err != nil {
		return err
	}
	config := &xppkgv1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: process}}
	if err := p.Plane.Client().Patch(ctx, config, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("cannot give %s its arguments: %w", process, err)
	}
	return nil
}

// InstallVersion installs published packages by applying their Configuration, or upgrades what is installed to them, and waits
// until they are healthy.
func (p *Platform) InstallVersion(ctx context.Context, a *build.Artifacts) error {
	p.say("installing " + a.Packages[Configuration].Tagged())
	ours := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration", "metadata": map[string]any{"name": Configuration},
		"spec": map[string]any{"package": a.Packages[Configuration].Tagged()},
	}}
	if err := p.Plane.Apply(ctx, ours); err != nil {
		return err
	}
	dependencies := map[string]xppkgv1.Package{Function: &xppkgv1.Function{}, Provider: &xppkgv1.Provider{}}
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
	if err := p.Plane.Apply(ctx, p.providerConfig(p.pushedAs(a))); err != nil {
		return err
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
