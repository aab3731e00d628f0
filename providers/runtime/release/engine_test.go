package release

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/render"
)

var id = v1alpha1.Identity{Tenant: "acme", Environment: "dev", UID: "uid-1"}

// mapper of a cluster that knows a few kinds.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Pod"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "batch", Version: "v1", Kind: "CronJob"}, {Group: "batch", Version: "v1", Kind: "Job"},
	} {
		m.Add(gvk, meta.RESTScopeNamespace)
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	} {
		m.Add(gvk, meta.RESTScopeRoot)
	}
	return m
}

func newEngine() (*helmEngine, *kubefake.FailingKubeClient) {
	kc := &kubefake.FailingKubeClient{PrintingKubeClient: kubefake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard}}
	mem := driver.NewMemory()
	mem.SetNamespace("acme-dev")
	return &helmEngine{
		cfg: &action.Configuration{
			Releases: storage.Init(mem), KubeClient: kc,
			Capabilities: chartutil.DefaultCapabilities.Copy(), Log: func(string, ...any) {},
		},
		renderer: render.New(render.Limits{}),
		name:     "acme-devops",
		live:     func(*unstructured.Unstructured) (metav1.Object, error) { return nil, nil },
		stamp:    stamp{identity: id, namespace: "acme-dev", mapper: mapper()},
	}, kc
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {image: {{ .Values.image | quote }}}\n"

// chartOf these templates.
func chartOf(templates ...string) *chart.Chart {
	c := &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "runtime", Version: "1.0.0"}}
	for i, t := range templates {
		c.Templates = append(c.Templates, &chart.File{Name: fmt.Sprintf("templates/%d.yaml", i), Data: []byte(t)})
	}
	return c
}

// of returns a deployment of a chart with these templates.
func of(image string, templates ...string) deployment { return ofChart(image, chartOf(templates...)) }

func ofChart(image string, c *chart.Chart) deployment {
	return deployment{
		chart:  func() ([]byte, error) { return archiveOf(c) },
		values: map[string]any{"image": image},
		labels: map[string]string{labelRequest: image, labelFailed: unset},
	}
}

// archiveOf a chart.
func archiveOf(c *chart.Chart) ([]byte, error) {
	dir, err := os.MkdirTemp("", "chart")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file, err := chartutil.Save(c, dir)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// records of the engine's release, oldest first.
func (e *helmEngine) records(t *testing.T) []string {
	t.Helper()
	rs, err := e.cfg.Releases.History(e.name)
	if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		t.Fatal(err)
	}
	out := make([]string, len(rs))
	for _, r := range rs {
		line := fmt.Sprintf("%d %s %s", r.Version, r.Info.Status, r.Labels[labelRequest])
		if f := r.Labels[labelFailed]; f != "" {
			line += " failed=" + f
		}
		out[r.Version-rs[0].Version] = line
	}
	return out
}

func TestDeploy(t *testing.T) {
	e, _ := newEngine()
	for _, image := range []string{"r:1", "r:2"} {
		if err := e.deploy(t.Context(), of(image, configMap)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"1 superseded r:1", "2 deployed r:2"}, e.records(t)); diff != "" {
		t.Error(diff)
	}
	if image, err := e.imageOf(2); err != nil || image != "r:2" {
		t.Errorf("got image %q, %v", image, err)
	}
	last, err := e.cfg.Releases.Last(e.name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(last.Manifest, "steading.dev/composite-uid: uid-1") {
		t.Errorf("what is sent is not stamped:\n%s", last.Manifest)
	}
}

// TestRepair has the process die in the middle of an operation.
func TestRepair(t *testing.T) {
	cases := map[string]struct {
		reason string
		before func(t *testing.T, e *helmEngine)
		want   []string
	}{
		"Install": {
			reason: "an install that was interrupted is marked failed and followed by an upgrade, which knows what was made",
			before: func(t *testing.T, e *helmEngine) { interrupt(t, e, helm.StatusPendingInstall) },
			want:   []string{"1 superseded r:1", "2 deployed r:2"},
		},
		"Upgrade": {
			reason: "an upgrade that was interrupted is marked failed and followed by another",
			before: func(t *testing.T, e *helmEngine) {
				must(t, e.deploy(t.Context(), of("r:0", configMap)))
				interrupt(t, e, helm.StatusPendingUpgrade)
			},
			want: []string{"1 superseded r:0", "2 failed r:1", "3 deployed r:2"},
		},
		"Rollback": {
			reason: "so is a rollback",
			before: func(t *testing.T, e *helmEngine) {
				must(t, e.deploy(t.Context(), of("r:0", configMap)))
				interrupt(t, e, helm.StatusPendingRollback)
			},
			want: []string{"1 superseded r:0", "2 failed r:1", "3 deployed r:2"},
		},
		"Uninstall": {
			reason: "an uninstall that was interrupted is finished first",
			before: func(t *testing.T, e *helmEngine) {
				must(t, e.deploy(t.Context(), of("r:0", configMap)))
				interrupt(t, e, helm.StatusUninstalling)
			},
			want: []string{"1 deployed r:2"},
		},
		"FailedInstall": {
			reason: "an install that failed is upgraded",
			before: func(t *testing.T, e *helmEngine) { interrupt(t, e, helm.StatusFailed) },
			want:   []string{"1 superseded r:1", "2 deployed r:2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine()
			tc.before(t, e)
			must(t, e.deploy(t.Context(), of("r:2", configMap)))
			if diff := cmp.Diff(tc.want, e.records(t)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// interrupt leaves the record that Helm writes before it begins, of another revision with image r:1.
func interrupt(t *testing.T, e *helmEngine, status helm.Status) {
	t.Helper()
	version := len(e.records(t)) + 1
	must(t, e.cfg.Releases.Create(&helm.Release{
		Name: e.name, Namespace: e.namespace, Version: version, Info: &helm.Info{Status: status},
		Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "runtime"}}, Labels: map[string]string{labelRequest: "r:1"},
	}))
}

func TestRollback(t *testing.T) {
	e, kc := newEngine()
	must(t, e.deploy(t.Context(), of("r:1", configMap)))
	must(t, e.deploy(t.Context(), of("r:2", configMap)))
	must(t, e.rollback(1, map[string]string{labelRequest: "r:1", labelFailed: "r:2"}, "r:2 crashes"))
	if diff := cmp.Diff([]string{"1 superseded r:1", "2 superseded r:2", "3 deployed r:1 failed=r:2"}, e.records(t)); diff != "" {
		t.Error(diff)
	}
	if image, err := e.imageOf(3); err != nil || image != "r:1" {
		t.Errorf("got image %q, %v, want that of the first revision", image, err)
	}
	must(t, e.deploy(t.Context(), of("r:3", configMap)))
	if diff := cmp.Diff([]string{"2 superseded r:2", "3 superseded r:1 failed=r:2", "4 deployed r:3"}, e.records(t)); diff != "" {
		t.Errorf("three revisions are kept, and what failed is forgotten by what succeeds it: -want +got\n%s", diff)
	}

	kc.UpdateError = errors.New("the quota is full")
	if err := e.deploy(t.Context(), of("r:4", configMap)); err == nil || errors.As(err, new(*refusedError)) {
		t.Errorf("got %v, want an error that may go away", err)
	}
	kc.UpdateError = nil
	must(t, e.rollback(4, map[string]string{labelRequest: "r:3", labelFailed: "r:4"}, "r:4 does not fit"))
	if got := e.records(t); got[len(got)-1] != "6 deployed r:3 failed=r:4" {
		t.Errorf("got %v", got)
	}
}

func TestUninstall(t *testing.T) {
	e, _ := newEngine()
	must(t, e.uninstall())
	must(t, e.deploy(t.Context(), of("r:1", configMap)))
	must(t, e.uninstall())
	if got := e.records(t); len(got) > 0 {
		t.Errorf("got %v, want no record", got)
	}
	must(t, e.deploy(t.Context(), of("r:1", configMap)))
	interrupt(t, e, helm.StatusPendingUpgrade)
	must(t, e.uninstall())
	if got := e.records(t); len(got) > 0 {
		t.Errorf("got %v, want no record", got)
	}
}

// TestRefuses what an environment's chart may not do, before anything is recorded or sent.
func TestRefuses(t *testing.T) {
	cases := map[string]struct {
		reason   string
		template string
		change   func(*chart.Chart)
		want     string
	}{
		"Hook":        {reason: "a hook", template: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: h, annotations: {helm.sh/hook: pre-install}}\n", want: `wants a hook, Job "h"`},
		"Namespace":   {reason: "another namespace", template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: kube-system}\n", want: `ConfigMap "a" in namespace kube-system`},
		"ClusterRole": {reason: "a cluster-scoped kind", template: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: root}\n", want: `ClusterRole "root", which is not of a namespace`},
		"CRD":         {reason: "a CRD among the templates", template: "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.example.com}\n", want: `CustomResourceDefinition "a.example.com"`},
		"CRDFolder": {reason: "a CRD in its folder", template: configMap, change: func(c *chart.Chart) {
			c.Files = append(c.Files, &chart.File{Name: "crds/a.yaml", Data: []byte("kind: CustomResourceDefinition")})
		}, want: "CustomResourceDefinition in runtime/crds/a.yaml"},
		"InList":      {reason: "what hides in a list", template: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}\n", want: "in namespace default"},
		"UnknownKind": {reason: "a kind that the cluster does not know", template: "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n", want: `Widget "w", a kind that the cluster does not know`},
		"HelmRecord":  {reason: "a record of Helm's, which would make a release seem another", template: "apiVersion: v1\nkind: Secret\nmetadata: {name: sh.helm.release.v1.acme-devops.v9}\ntype: helm.sh/release.v1\n", want: `Secret "sh.helm.release.v1.acme-devops.v9", a record of Helm's`},
		"Endless":     {reason: "a template that counts for ever", template: "{{ range until 2000000 }}{{ range until 2000000 }}{{ end }}{{ end }}", want: "to render: have it make less"},
		"Broken":      {reason: "a template that does not render", template: "{{ fail \"nothing fits\" }}", want: "nothing fits"},
		"NotYAML":     {reason: "what is not YAML", template: "a: b: c", want: "not YAML"},
		"Schema":      {reason: "values against the schema", template: configMap, change: func(c *chart.Chart) { c.Schema = []byte(`{"required":["tenant"]}`) }, want: "the chart refuses its values"},
		"Amount":      {reason: "an amount that would stall the provider", template: "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, resources: {limits: {cpu: \"1e999999999\"}}}]}\n", want: `Pod "p" with an amount that is out of bounds: spec.containers[0].resources.limits.cpu`},
		"Kubernetes":  {reason: "another Kubernetes", template: configMap, change: func(c *chart.Chart) { c.Metadata.KubeVersion = ">=99.0.0" }, want: "wants Kubernetes >=99.0.0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, before := range []string{"", "r:1"} {
				e, _ := newEngine()
				var want []string
				if before != "" {
					must(t, e.deploy(t.Context(), of(before, configMap)))
				}
				want = e.records(t)
				c := chartOf(tc.template)
				if tc.change != nil {
					tc.change(c)
				}
				err := e.deploy(t.Context(), ofChart("r:2", c))
				if !errors.As(err, new(*refusedError)) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: got %v, want it refused with %q", tc.reason, err, tc.want)
				}
				if diff := cmp.Diff(want, e.records(t)); diff != "" {
					t.Errorf("%s: what runs must not be touched: -want +got\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// TestTestHooksAreNoHooks since nobody runs them here.
func TestTestHooksAreNoHooks(t *testing.T) {
	e, _ := newEngine()
	must(t, e.deploy(t.Context(), of("r:1", configMap, "apiVersion: v1\nkind: Pod\nmetadata: {name: t, annotations: {helm.sh/hook: test}}\n")))
	last, err := e.cfg.Releases.Last(e.name)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(last.Manifest, "kind: Pod") {
		t.Error("the test was deployed")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsRenderedIsWhatIsInstalled: a chart may render something else each time, so that what was checked is installed, and
// what is gone back to is what was there, subcharts and all.
func TestWhatIsRenderedIsWhatIsInstalled(t *testing.T) {
	e, _ := newEngine()
	parent := chartOf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {random: {{ randAlphaNum 20 | quote }}}\n")
	sub := chartOf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sub}\n")
	sub.Metadata.Name = "sub"
	parent.AddDependency(sub)
	must(t, e.deploy(t.Context(), ofChart("r:1", parent)))
	first, err := e.cfg.Releases.Last(e.name)
	must(t, err)
	if !strings.Contains(first.Manifest, "name: sub\n") || strings.Count(first.Manifest, "random: ") != 1 {
		t.Fatalf("installed is\n%s", first.Manifest)
	}
	if len(first.Chart.Templates) > 0 {
		t.Error("the record holds templates, which nobody renders")
	}
	must(t, e.deploy(t.Context(), of("r:2", configMap)))
	must(t, e.rollback(1, map[string]string{labelRequest: "r:1", labelFailed: "r:2"}, "r:2 crashes"))
	last, err := e.cfg.Releases.Last(e.name)
	must(t, err)
	if diff := cmp.Diff(first.Manifest, last.Manifest); diff != "" {
		t.Errorf("what is gone back to is not what was there: -want +got\n%s", diff)
	}
}
