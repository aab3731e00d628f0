package install

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	xppkgv1beta1 "github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"
	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// template is what `helm template` makes of this chart, by the objects' identity.
func template(t *testing.T, values string) map[string]any {
	t.Helper()
	rendered, err := render(loadChart(t), values)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func render(c *chart.Chart, values string) (map[string]any, error) {
	files, err := renderFiles(c, values)
	if err != nil {
		return nil, err
	}
	return byIdentity([]byte(files["steading/templates/install.yaml"]))
}

// renderFiles of the chart, by their names.
func renderFiles(c *chart.Chart, values string) (map[string]string, error) {
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.35.4", Major: "1", Minor: "35"}
	release := chartutil.ReleaseOptions{Name: "steading", Namespace: "crossplane-system", IsInstall: true}
	all, err := chartutil.ToRenderValues(c, given, release, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// build is what `kustomize build` makes of a folder, by the objects' identity.
func build(t *testing.T, folder string) map[string]any {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	y, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := byIdentity(y)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// byIdentity are the objects of a stream. Two of one identity are an error.
func byIdentity(stream []byte) (map[string]any, error) {
	all := map[string]any{}
	for d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096); ; {
		u := &unstructured.Unstructured{}
		switch err := d.Decode(&u.Object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case len(u.Object) == 0:
			continue
		}
		id := strings.Join([]string{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}, " ")
		if _, ok := all[id]; ok {
			return nil, errors.New("twice: " + id)
		}
		all[id] = u.Object
	}
}

// What Helm prints can be run as it is: it names the packages of the chart's own version, where they are.
func TestNotesNameThePackages(t *testing.T) {
	c := loadChart(t)
	if want := "v" + c.Metadata.Version; c.Metadata.AppVersion != want {
		t.Errorf("the chart is for packages of version %q, want %s", c.Metadata.AppVersion, want)
	}
	c.Metadata.Version, c.Metadata.AppVersion = "0.2.0", "v0.2.0"
	files, err := renderFiles(c, "registry: registry.internal:5000/steading")
	if err != nil {
		t.Fatal(err)
	}
	notes := files["steading/templates/NOTES.txt"]
	if want := `{package: "registry.internal:5000/steading/configuration-steading:v0.2.0"}`; !strings.Contains(notes, want) {
		t.Errorf("want %s in:\n%s", want, notes)
	}
}

// Helm and kustomize install the same.
func TestHelmAndKustomizeMakeTheSameObjects(t *testing.T) {
	platform := build(t, ".")
	if len(platform) < 70 {
		t.Errorf("kustomize builds %d objects, want all of base and runtimes", len(platform))
	}
	if diff := cmp.Diff(platform, template(t, "")); diff != "" {
		t.Errorf("-kustomize, +helm:\n%s", diff)
	}

	monitored := template(t, "monitoring: {enabled: true}")
	monitoring := build(t, "monitoring")
	if len(monitoring) != 5 {
		t.Errorf("kustomize builds %d objects of monitoring, want three PodMonitors, alerts and a dashboard", len(monitoring))
	}
	for id, o := range monitoring {
		platform[id] = o
	}
	if diff := cmp.Diff(platform, monitored); diff != "" {
		t.Errorf("with monitoring: -kustomize, +helm:\n%s", diff)
	}
}

// What the values change, and that they change nothing else.
func TestValuesChangeWhatTheySay(t *testing.T) {
	const (
		function = "pkg.crossplane.io/v1beta1 DeploymentRuntimeConfig  function-steading"
		provider = "pkg.crossplane.io/v1beta1 DeploymentRuntimeConfig  provider-runtime"
		images   = "pkg.crossplane.io/v1beta1 ImageConfig  steading-"
	)
	cases := map[string]struct {
		reason, values string
		want           map[string]string // by object, something that is only in it as it is now
	}{
		"Registry": {"Packages that come from a mirror run like the others.", "registry: 10.0.0.7:5000/mirrors/steading", map[string]string{
			images + "function-steading": "prefix: 10.0.0.7:5000/mirrors/steading/function-steading",
			images + "provider-forgejo":  "prefix: 10.0.0.7:5000/mirrors/steading/provider-forgejo",
			images + "provider-runtime":  "prefix: 10.0.0.7:5000/mirrors/steading/provider-runtime",
		}},
		"Replicas": {"A cluster of one node needs no second one.", "runtimes: {provider-runtime: {replicas: 1}}", map[string]string{provider: "replicas: 1"}},
		"Amounts": {"A number is an amount, too, and so is half of one.", "runtimes: {provider-runtime: {resources: {requests: {cpu: 2, memory: 1.5Gi}}}}", map[string]string{
			provider: "requests: cpu: 2 memory: 1.5Gi",
		}},
		"CABundle": {"A registry may have a CA of its own.", "runtimes: {provider-runtime: {caBundle: private-ca}}", map[string]string{
			provider: "- name: SSL_CERT_DIR value: /etc/steading/ca",
		}},
		"Resources": {"A big platform needs more.", "runtimes: {function-steading: {resources: {limits: {memory: 3Gi}}}}", map[string]string{
			function: "limits: memory: 3Gi requests: cpu: 100m",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := template(t, ""), template(t, tc.values)
			for id := range after {
				was, is := oneLine(t, before[id]), oneLine(t, after[id])
				want, changes := tc.want[id]
				if changes != (was != is) {
					t.Errorf("%s: %s: -without, +with values:\n%s", tc.reason, id, cmp.Diff(was, is))
				}
				if changes && (!strings.Contains(is, want) || strings.Contains(was, want)) {
					t.Errorf("%s: %s: want what was not there before:\n%s\ngot:\n%s", tc.reason, id, want, is)
				}
			}
			if len(before) != len(after) {
				t.Errorf("%s: %d objects, with values %d", tc.reason, len(before), len(after))
			}
		})
	}
}

// A private CA is mounted where the process looks for it, and takes the place of nothing that the files say.
func TestACABundleIsMounted(t *testing.T) {
	const id = "pkg.crossplane.io/v1beta1 DeploymentRuntimeConfig  provider-runtime"
	pod := func(values string) corev1.PodSpec {
		y, err := yaml.Marshal(template(t, values)[id])
		if err != nil {
			t.Fatal(err)
		}
		c := &xppkgv1beta1.DeploymentRuntimeConfig{}
		if err := yaml.UnmarshalStrict(y, c); err != nil {
			t.Fatal(err)
		}
		return c.Spec.DeploymentTemplate.Spec.Template.Spec
	}
	want, got := pod(""), pod("runtimes: {provider-runtime: {caBundle: private-ca}}")
	runs := &want.Containers[0]
	runs.Env = append(runs.Env, corev1.EnvVar{Name: "SSL_CERT_DIR", Value: "/etc/steading/ca"})
	runs.VolumeMounts = append(runs.VolumeMounts, corev1.VolumeMount{Name: "ca", MountPath: "/etc/steading/ca", ReadOnly: true})
	want.Volumes = append(want.Volumes, corev1.Volume{Name: "ca", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "private-ca"}},
	}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// oneLine is an object's YAML without its layout.
func oneLine(t *testing.T, o any) string {
	t.Helper()
	y, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(y)), " ")
}

func TestValuesAreChecked(t *testing.T) {
	for name, tc := range map[string]struct{ values, want string }{
		"Typo":       {"monitorin: {enabled: true}", "monitorin"},
		"NoSuchPart": {"runtimes: {provider-forge: {replicas: 2}}", "provider-forge"},
		"NoReplicas": {"runtimes: {provider-runtime: {replicas: 0}}", "replicas"},
		"Scheme":     {"registry: https://ghcr.io/steading-dev", "registry"},
		"Slash":      {"registry: ghcr.io/steading-dev/", "registry"},
		"NoRegistry": {"registry: null", "missing property 'registry'"},
		"NoRuntimes": {"runtimes: null", "missing property 'runtimes'"},
		"NoSettings": {"monitoring: null", "missing property 'monitoring'"},
		"NoAmount":   {"runtimes: {provider-runtime: {resources: {limits: {memory: plenty}}}}", "memory"},
		"NoUnit":     {"runtimes: {provider-runtime: {resources: {limits: {memory: 1GB}}}}", "memory"},
		"NoName":     {"runtimes: {provider-runtime: {caBundle: '-----BEGIN CERTIFICATE-----'}}", "caBundle"},
		"NoUse":      {"runtimes: {provider-forgejo: {caBundle: private-ca}}", "caBundle"},
		"Nested":     {"runtimes: {provider-runtime: {resources: {requests: {limits: {cpu: 1}}}}}", "limits"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(loadChart(t), tc.values); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want an error that names %q, got: %v", tc.want, err)
			}
		})
	}
}

// The chart is what is published, so that nothing but manifests is in it.
func TestChartHoldsManifestsOnly(t *testing.T) {
	for _, f := range loadChart(t).Files {
		if !strings.HasSuffix(f.Name, ".yaml") && f.Name != ".helmignore" {
			t.Errorf("the chart has %s: add it to .helmignore", f.Name)
		}
	}
}
