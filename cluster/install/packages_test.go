package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	xpextensionsv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	xppkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/cli"
	helm "helm.sh/helm/v3/pkg/registry"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/cluster/local"
	builder "github.com/steading-dev/steading/package/build"
	"github.com/steading-dev/steading/test/harness"
)

// Where the test's packages are: below a path deep in its registry.
const mirror = "mirrors/steading"

// public is where releases are, which the test cannot reach.
const public = "ghcr.io/steading-dev"

// versions that the registry has.
var versions = []string{"v0.1.0", "v0.2.0"}

// A site is a control plane with Crossplane, which runs packages as pods, and a registry.
type site struct {
	plane    *local.Plane
	registry string // host, and the path below which everything is
	helm     *action.Configuration
	reader   harness.Reader
}

// TestConfigurationAloneInstallsThePlatform on a bare Crossplane that has what the chart installs: with all that it depends
// on, run as the chart says. Then all of it is removed again, in the order that docs/install.md gives, and installed once
// more as if from where releases are, by rewriting images. From there the commands of that page remove it, and those for kustomize
// do and undo what the chart does.
// The pods are KWOK's: they are scheduled and said to run, and nothing runs in them.
func TestConfigurationAloneInstallsThePlatform(t *testing.T) {
	s := startSite(t)
	t.Run("install", func(t *testing.T) {
		publish(t, s.registry, s.registry)
		s.installChart(t)
		s.apply(t, configuration(s.registry, "v0.1.0"))
		s.waitHealthy(t, mirror, "v0.1.0")
		s.checkFunctionIsCalled(t)
		s.checkProcesses(t)
	})
	t.Run("upgrade", func(t *testing.T) {
		s.upgradeChart(t)
		s.apply(t, configuration(s.registry, "v0.2.0"))
		s.upgrade(t, &xppkgv1.Function{}, "function-steading", "v0.2.0")
		s.upgrade(t, &xppkgv1.Provider{}, "provider-runtime", "v0.2.0")
		s.upgrade(t, &xppkgv1.Provider{}, "provider-forgejo", "v0.2.0")
		s.waitHealthy(t, mirror, "v0.2.0")
		s.checkFunctionIsCalled(t)
	})
	t.Run("uninstall", func(t *testing.T) {
		s.uninstallPackages(t, mirror)
		s.uninstallChart(t)
	})
	t.Run("rewritten", func(t *testing.T) {
		s.registry = path.Join(path.Dir(path.Dir(s.registry)), "copies")
		publish(t, public, s.registry)
		s.installChart(t)
		s.apply(t, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig", "metadata": map[string]any{"name": "mirror"},
			"spec": map[string]any{
				"matchImages":  []any{map[string]any{"prefix": public}},
				"rewriteImage": map[string]any{"prefix": s.registry},
			},
		}}, configuration(public, "v0.1.0"))
		s.waitHealthy(t, "steading-dev", "v0.1.0")
		s.checkFunctionIsCalled(t)
		s.checkProcesses(t)
	})
	page := filepath.Join("..", "..", "docs", "install.md")
	isKustomize := func(command string) bool {
		return strings.Contains(command, " -k cluster/install") && !strings.Contains(command, "monitoring")
	}
	uninstalling := harness.Documented(t, page, "### Uninstalling")
	t.Run("uninstalled as documented", func(t *testing.T) {
		s.reader.Run(t, slices.DeleteFunc(slices.Clone(uninstalling), isKustomize)...)
		harness.WantNothingOfOurs(t, s.plane.Config())
	})
	t.Run("kustomize as documented", func(t *testing.T) {
		keep := func(command string) bool { return !isKustomize(command) }
		installing := slices.DeleteFunc(harness.Documented(t, page, "## On a cluster"), keep)
		if len(installing) != 2 {
			t.Fatalf("installs and uninstalls by %q", installing)
		}
		s.reader.Run(t, installing[0])
		s.checkInstalledBy(t, installing[0])
		s.reader.Run(t, installing[1])
		harness.WantNothingOfOurs(t, s.plane.Config())
	})
}

// checkInstalledBy a command is all that the chart installs.
func (s *site) checkInstalledBy(t *testing.T, command string) {
	t.Helper()
	for id, o := range template(t, "") {
		object, ok := o.(map[string]any)
		if !ok {
			t.Fatalf("%s is no object", id)
		}
		u := (&unstructured.Unstructured{Object: object}).DeepCopy()
		if err := s.plane.Client().Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
			t.Errorf("%s: %s: %v", command, id, err)
		}
	}
}

func startSite(t *testing.T) *site {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane; not under -short")
	}
	registry, err := local.StartRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := local.Start(t.Context(), local.Options{
		Name: "packages", Crossplane: true, CrossplaneArgs: []string{"--package-runtime=Deployment"}, Progress: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Stop(), registry.Stop()); err != nil {
			t.Error(err)
		}
	})
	settings := cli.New()
	settings.KubeConfig = p.Kubeconfig()
	h := &action.Configuration{}
	if err := h.Init(settings.RESTClientGetter(), local.CrossplaneNamespace, "secret", t.Logf); err != nil {
		t.Fatal(err)
	}
	tools, err := local.BuildTools(t.Context(), func(line string) { t.Log(line) }, local.Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	reader := harness.Reader{Top: filepath.Join("..", ".."), Kubectl: tools.Path(local.Kubectl), Kubeconfig: p.Kubeconfig()}
	return &site{plane: p, registry: path.Join(registry.Host(), mirror), helm: h, reader: reader}
}

// publish this tree's packages and chart, made for one registry, in another or the same. The packages are without their
// binaries, which no pod of KWOK's would start.
func publish(t *testing.T, madeFor, registry string) {
	t.Helper()
	for _, version := range versions {
		o := options(madeFor, version)
		for _, name := range append(processes(t), "configuration-steading") {
			a, err := builder.Package(t.Context(), o, name)
			push(t, a, err, registry, name)
		}
	}
	a, err := builder.InstallChart(options(registry, versions[0]))
	push(t, a, err, registry, builder.SteadingChart)
}

func options(registry, version string) builder.Options {
	host, repository, _ := strings.Cut(registry, "/")
	return builder.Options{RepoDir: "../..", Registry: host, Repository: repository, Version: version, External: true}
}

func push(t *testing.T, a builder.Artifact, err error, registry, name string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	a.Repository = path.Join(registry, name)
	if err := builder.Push(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// installChart that was published, as it comes.
func (s *site) installChart(t *testing.T) {
	t.Helper()
	install := action.NewInstall(s.helm)
	install.ReleaseName, install.Namespace = "steading", local.CrossplaneNamespace
	if _, err := install.RunWithContext(t.Context(), s.pullChart(t), nil); err != nil {
		t.Fatal(err)
	}
}

// upgradeChart with other values. What the operator wrote into what it installed stays.
func (s *site) upgradeChart(t *testing.T) {
	t.Helper()
	c := s.plane.Client()
	reserved := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "steading-reserved-names"}}
	if err := c.Patch(t.Context(), reserved, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"names":"www"}}`))); err != nil {
		t.Fatal(err)
	}
	values := map[string]any{"runtimes": map[string]any{"provider-runtime": map[string]any{"replicas": 1}}}
	upgrade := action.NewUpgrade(s.helm)
	upgrade.Namespace = local.CrossplaneNamespace
	if _, err := upgrade.RunWithContext(t.Context(), "steading", s.pullChart(t), values); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(reserved), reserved); err != nil || reserved.Data["names"] != "www" {
		t.Errorf("reserved names after the upgrade: %v, %v", reserved.Data, err)
	}
	s.touchRevisions(t)
	within(t, time.Minute, "one provider runs", func(ctx context.Context) error {
		for _, d := range s.deployments(ctx, t, "provider-runtime") {
			if *d.Spec.Replicas != 1 {
				return fmt.Errorf("%d replicas", *d.Spec.Replicas)
			}
		}
		return nil
	})
}

// touchRevisions so that Crossplane looks at them: it does not watch what an ImageConfig names (crossplane 2.4.0,
// internal/controller/pkg/runtime/watch.go).
func (s *site) touchRevisions(t *testing.T) {
	t.Helper()
	revisions := &xppkgv1.ProviderRevisionList{}
	if err := s.plane.Client().List(t.Context(), revisions); err != nil {
		t.Fatal(err)
	}
	for i := range revisions.Items {
		touch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"steading.dev/looked-at":"now"}}}`))
		if err := s.plane.Client().Patch(t.Context(), &revisions.Items[i], touch); err != nil {
			t.Fatal(err)
		}
	}
}

// pullChart as Helm does.
func (s *site) pullChart(t *testing.T) *chart.Chart {
	t.Helper()
	puller, err := helm.NewClient(helm.ClientOptPlainHTTP())
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := puller.Pull(path.Join(s.registry, builder.SteadingChart) + ":" + strings.TrimPrefix(versions[0], "v"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := loader.LoadArchive(bytes.NewReader(pulled.Chart.Data))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *site) apply(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	if err := s.plane.Apply(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
}

// configuration is what an operator applies.
func configuration(registry, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration", "metadata": map[string]any{"name": "configuration-steading"},
		"spec": map[string]any{"package": registry + "/configuration-steading:" + version},
	}}
}

// dependency is what Crossplane calls a package below a path, if it installs it for the Configuration.
func dependency(repository, name string) string {
	return strings.ReplaceAll(repository, "/", "-") + "-" + name
}

// upgrade a package that the Configuration depends on.
func (s *site) upgrade(t *testing.T, pkg client.Object, name, version string) {
	t.Helper()
	pkg.SetName(dependency(mirror, name))
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"package":"%s/%s:%s"}}`, s.registry, name, version))
	if err := s.plane.Client().Patch(t.Context(), pkg, patch); err != nil {
		t.Fatal(err)
	}
}

// waitHealthy until all packages of that version are installed and healthy.
func (s *site) waitHealthy(t *testing.T, repository, version string) {
	t.Helper()
	within(t, 3*time.Minute, "packages of "+version+" are healthy", func(ctx context.Context) error {
		for name, pkg := range map[string]xppkgv1.Package{
			"configuration-steading":                    &xppkgv1.Configuration{},
			dependency(repository, "function-steading"): &xppkgv1.Function{},
			dependency(repository, "provider-runtime"):  &xppkgv1.Provider{},
			dependency(repository, "provider-forgejo"):  &xppkgv1.Provider{},
		} {
			if err := s.plane.Client().Get(ctx, client.ObjectKey{Name: name}, pkg); err != nil {
				return err
			}
			if got := pkg.GetCurrentIdentifier(); !strings.HasSuffix(got, ":"+version) {
				return fmt.Errorf("%s is %s", name, got)
			}
			installed, healthy := pkg.GetCondition(xppkgv1.TypeInstalled), pkg.GetCondition(xppkgv1.TypeHealthy)
			if installed.Status != corev1.ConditionTrue || healthy.Status != corev1.ConditionTrue {
				return fmt.Errorf("%s: installed %s: %s, healthy %s: %s", name, installed.Status, installed.Message, healthy.Status, healthy.Message)
			}
		}
		return s.takesWhatItDependsOn(ctx, version)
	})
}

// takesWhatItDependsOn is nil when the Configuration's revision of that version is the active one, and healthy.
func (s *site) takesWhatItDependsOn(ctx context.Context, version string) error {
	revisions := &xppkgv1.ConfigurationRevisionList{}
	if err := s.plane.Client().List(ctx, revisions); err != nil {
		return err
	}
	for _, r := range revisions.Items {
		if r.GetDesiredState() != xppkgv1.PackageRevisionActive {
			continue
		}
		if c := r.GetCondition(xppkgv1.TypeRevisionHealthy); c.Status != corev1.ConditionTrue || !strings.HasSuffix(r.GetSource(), ":"+version) {
			return fmt.Errorf("revision %s of %s: healthy %s: %s", r.Name, r.GetSource(), c.Status, c.Message)
		}
		return nil
	}
	return errors.New("no revision of the Configuration is active")
}

// checkFunctionIsCalled by all Compositions, by the name that Crossplane gave it.
func (s *site) checkFunctionIsCalled(t *testing.T) {
	t.Helper()
	written, err := filepath.Glob("../../compositions/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	compositions := &xpextensionsv1.CompositionList{}
	within(t, time.Minute, "all Compositions are there", func(ctx context.Context) error {
		if err := s.plane.Client().List(ctx, compositions); err != nil {
			return err
		}
		if len(compositions.Items) != len(written) {
			return fmt.Errorf("%d, want %d", len(compositions.Items), len(written))
		}
		return nil
	})
	for _, c := range compositions.Items {
		for _, step := range c.Spec.Pipeline {
			if err := s.plane.Client().Get(t.Context(), client.ObjectKey{Name: step.FunctionRef.Name}, &xppkgv1.Function{}); err != nil {
				t.Errorf("Composition %s calls %s: %v", c.Name, step.FunctionRef.Name, err)
			}
		}
	}
	within(t, time.Minute, "claims are taken", func(ctx context.Context) error {
		for _, claims := range []string{"tenants", "contexts", "environments"} {
			if err := s.plane.Client().Get(ctx, client.ObjectKey{Name: claims + ".steading.dev"}, &apiextensionsv1.CustomResourceDefinition{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// deployments of a process.
func (s *site) deployments(ctx context.Context, t *testing.T, process string) []appsv1.Deployment {
	t.Helper()
	all := &appsv1.DeploymentList{}
	if err := s.plane.Client().List(ctx, all, client.InNamespace(local.CrossplaneNamespace)); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all.Items, func(d appsv1.Deployment) bool {
		return d.Spec.Template.Labels["app.kubernetes.io/name"] != process
	})
}

// checkProcesses are run as their configs say, whatever Crossplane calls the packages.
func (s *site) checkProcesses(t *testing.T) {
	t.Helper()
	for _, p := range processes(t) {
		deployments := s.deployments(t.Context(), t, p)
		if len(deployments) != 1 {
			t.Errorf("%s: %d deployments, want one", p, len(deployments))
			continue
		}
		want, got := runtimeConfig(t, p).Spec.DeploymentTemplate.Spec, deployments[0].Spec
		if *got.Replicas != *want.Replicas {
			t.Errorf("%s: %d replicas, want %d", p, *got.Replicas, *want.Replicas)
		}
		pod, container := got.Template.Spec, got.Template.Spec.Containers[0]
		if pod.ServiceAccountName != p {
			t.Errorf("%s runs as %s", p, pod.ServiceAccountName)
		}
		if len(pod.Containers) != 1 || !strings.HasPrefix(container.Image, s.registry+"/"+p+":") {
			t.Errorf("%s runs %d containers, the first of %s", p, len(pod.Containers), container.Image)
		}
		if diff := cmp.Diff(want.Template.Spec.SecurityContext, pod.SecurityContext); diff != "" {
			t.Errorf("%s: pod: -want, +got:\n%s", p, diff)
		}
		if diff := cmp.Diff(want.Template.Spec.Containers[0].SecurityContext, container.SecurityContext); diff != "" {
			t.Errorf("%s: container: -want, +got:\n%s", p, diff)
		}
		if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == "metrics" && p.ContainerPort == 8080 }) {
			t.Errorf("%s: ports %v, want one called metrics", p, container.Ports)
		}
		if err := s.plane.Client().Get(t.Context(), client.ObjectKey{Namespace: local.CrossplaneNamespace, Name: p}, &corev1.ServiceAccount{}); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// uninstallPackages when no claim is left. Kinds and processes go with them.
func (s *site) uninstallPackages(t *testing.T, repository string) {
	t.Helper()
	c := s.plane.Client()
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	for _, pkg := range []client.Object{
		&xppkgv1.Configuration{ObjectMeta: named("configuration-steading")},
		&xppkgv1.Function{ObjectMeta: named(dependency(repository, "function-steading"))},
		&xppkgv1.Provider{ObjectMeta: named(dependency(repository, "provider-runtime"))},
		&xppkgv1.Provider{ObjectMeta: named(dependency(repository, "provider-forgejo"))},
	} {
		if err := c.Delete(t.Context(), pkg, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			t.Fatal(err)
		}
		within(t, 2*time.Minute, pkg.GetName()+" is gone", func(ctx context.Context) error {
			return gone(c.Get(ctx, client.ObjectKeyFromObject(pkg), pkg))
		})
	}
	within(t, time.Minute, "all kinds of ours are gone", func(ctx context.Context) error {
		crds := &apiextensionsv1.CustomResourceDefinitionList{}
		if err := c.List(ctx, crds); err != nil {
			return err
		}
		for _, crd := range crds.Items {
			if crd.Spec.Group == "steading.dev" || strings.HasSuffix(crd.Spec.Group, ".steading.dev") {
				return fmt.Errorf("%s is there", crd.Name)
			}
		}
		return nil
	})
	within(t, time.Minute, "nothing of the processes is left", func(ctx context.Context) error {
		deployments := &appsv1.DeploymentList{}
		if err := c.List(ctx, deployments, client.InNamespace(local.CrossplaneNamespace)); err != nil {
			return err
		}
		for _, p := range processes(t) {
			if err := gone(c.Get(ctx, client.ObjectKey{Namespace: local.CrossplaneNamespace, Name: p}, &corev1.ServiceAccount{})); err != nil {
				return fmt.Errorf("ServiceAccount %s: %w", p, err)
			}
		}
		if len(deployments.Items) > 0 {
			return fmt.Errorf("%d deployments", len(deployments.Items))
		}
		return nil
	})
}

// uninstallChart, and remove the namespaces, which it leaves.
func (s *site) uninstallChart(t *testing.T) {
	t.Helper()
	released, err := s.helm.Releases.Last("steading")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := action.NewUninstall(s.helm).Run("steading"); err != nil {
		t.Fatal(err)
	}
	c := s.plane.Client()
	for _, name := range []string{names.SystemNamespace, names.EdgeNamespace} {
		ns := &corev1.Namespace{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, ns); err != nil {
			t.Fatalf("uninstalling the chart should leave namespace %s: %v", name, err)
		}
		if !ns.DeletionTimestamp.IsZero() {
			t.Errorf("uninstalling the chart should leave namespace %s, and deletes it", name)
		}
		if err := c.Delete(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
	}
	installed, err := byIdentity([]byte(released.Manifest))
	if err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, "what the chart installed is gone", func(ctx context.Context) error {
		for id, o := range installed {
			object, ok := o.(map[string]any)
			if !ok {
				return fmt.Errorf("%s is no object", id)
			}
			u := (&unstructured.Unstructured{Object: object}).DeepCopy()
			if err := gone(c.Get(ctx, client.ObjectKeyFromObject(u), u)); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
		}
		return nil
	})
}

// gone is nil when a Get did not find what it looked for.
func gone(err error) error {
	if err == nil {
		return errors.New("it is there")
	}
	return client.IgnoreNotFound(err)
}

// within a time far longer than it should take, wait until done.
func within(t *testing.T, limit time.Duration, what string, done func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		err := done(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: still not: %v", what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
