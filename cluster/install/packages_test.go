package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	xpextensionsv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	xppkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/cluster/local"
	builder "github.com/steading-dev/steading/package/build"
)

// repository of the mirror that the test installs from, deep in its registry.
const repository = "mirrors/steading"

// A site is a control plane with Crossplane, which runs packages as pods, and a registry.
type site struct {
	plane    *local.Plane
	registry string // host, and the path below which everything is
}

// TestConfigurationAloneInstallsThePlatform on a bare Crossplane that has what the chart installs: from a mirror, with all
// that it depends on, run as the chart says. Then all of it is removed again, in the order that docs/install.md gives.
// The pods are KWOK's: they are scheduled and said to run, and nothing runs in them.
func TestConfigurationAloneInstallsThePlatform(t *testing.T) {
	s := startSite(t)
	installed := s.installChart(t)
	t.Run("install", func(t *testing.T) {
		s.apply(t, configuration(s.registry, "v0.1.0"))
		s.waitHealthy(t, "v0.1.0")
		s.checkFunctionIsCalled(t)
		s.checkProcesses(t)
	})
	t.Run("upgrade", func(t *testing.T) {
		s.apply(t, configuration(s.registry, "v0.2.0"))
		s.upgrade(t, &xppkgv1.Function{}, "function-steading", "v0.2.0")
		s.upgrade(t, &xppkgv1.Provider{}, "provider-runtime", "v0.2.0")
		s.waitHealthy(t, "v0.2.0")
		s.checkFunctionIsCalled(t)
	})
	t.Run("uninstall", func(t *testing.T) {
		s.uninstall(t, installed)
	})
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
	s := &site{plane: p, registry: path.Join(registry.Host(), repository)}
	for _, version := range []string{"v0.1.0", "v0.2.0"} {
		publish(t, registry.Host(), version)
	}
	return s
}

// publish this tree's packages, without the binaries, which no pod of KWOK's would start.
func publish(t *testing.T, host, version string) {
	t.Helper()
	o := builder.Options{RepoDir: "../..", Registry: host, Repository: repository, Version: version, External: true}
	for _, name := range append(processes(t), "configuration-steading") {
		a, err := builder.Package(t.Context(), o, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := builder.Push(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
}

// installChart as Helm would, by server-side apply, namespaces first.
func (s *site) installChart(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	rendered := template(t, "registry: "+s.registry)
	var namespaces, others []*unstructured.Unstructured
	for _, id := range slices.Sorted(maps.Keys(rendered)) {
		object, ok := rendered[id].(map[string]any)
		if !ok {
			t.Fatalf("%s is no object", id)
		}
		u := &unstructured.Unstructured{Object: object}
		if u.GetKind() == "Namespace" {
			namespaces = append(namespaces, u)
		} else {
			others = append(others, u)
		}
	}
	all := slices.Concat(namespaces, others)
	s.apply(t, all...)
	return all
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

// dependency is what Crossplane calls a package that it installs for the Configuration.
func dependency(name string) string { return strings.ReplaceAll(repository, "/", "-") + "-" + name }

// upgrade a package that the Configuration depends on.
func (s *site) upgrade(t *testing.T, pkg client.Object, name, version string) {
	t.Helper()
	pkg.SetName(dependency(name))
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"package":"%s/%s:%s"}}`, s.registry, name, version))
	if err := s.plane.Client().Patch(t.Context(), pkg, patch); err != nil {
		t.Fatal(err)
	}
}

// waitHealthy until all packages of that version are installed and healthy.
func (s *site) waitHealthy(t *testing.T, version string) {
	t.Helper()
	within(t, 3*time.Minute, "packages of "+version+" are healthy", func(ctx context.Context) error {
		for name, pkg := range map[string]xppkgv1.Package{
			"configuration-steading": &xppkgv1.Configuration{}, dependency("function-steading"): &xppkgv1.Function{}, dependency("provider-runtime"): &xppkgv1.Provider{},
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

// checkProcesses are run as their configs say, whatever Crossplane calls the packages.
func (s *site) checkProcesses(t *testing.T) {
	t.Helper()
	for _, p := range processes(t) {
		deployments := &appsv1.DeploymentList{}
		if err := s.plane.Client().List(t.Context(), deployments, client.InNamespace(local.CrossplaneNamespace)); err != nil {
			t.Fatal(err)
		}
		deployments.Items = slices.DeleteFunc(deployments.Items, func(d appsv1.Deployment) bool {
			return d.Spec.Template.Labels["app.kubernetes.io/name"] != p
		})
		if len(deployments.Items) != 1 {
			t.Errorf("%s: %d deployments, want one", p, len(deployments.Items))
			continue
		}
		want, got := runtimeConfig(t, p).Spec.DeploymentTemplate.Spec, deployments.Items[0].Spec
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

// uninstall in the order of docs/install.md, claims being gone: packages, then what the chart installed.
func (s *site) uninstall(t *testing.T, chart []*unstructured.Unstructured) {
	t.Helper()
	c := s.plane.Client()
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	for _, pkg := range []client.Object{
		&xppkgv1.Configuration{ObjectMeta: named("configuration-steading")},
		&xppkgv1.Function{ObjectMeta: named(dependency("function-steading"))},
		&xppkgv1.Provider{ObjectMeta: named(dependency("provider-runtime"))},
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
	for _, o := range slices.Backward(chart) {
		if err := c.Delete(t.Context(), o.DeepCopy()); err != nil && !kerrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	within(t, time.Minute, "what the chart installed is gone", func(ctx context.Context) error {
		for _, o := range chart {
			if err := gone(c.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopy())); err != nil {
				return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
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
