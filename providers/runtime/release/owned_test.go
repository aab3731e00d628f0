package release

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/kube"
	helm "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steading-dev/steading/providers/runtime/render"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata/fake"
)

// owned by a Helm release of that name.
func owned(name, by string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme-dev", Name: name, Annotations: map[string]string{releaseNameAnnotation: by}},
	}
}

const fourObjects = `---
# Source: runtime/templates/0.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: ours, namespace: acme-dev}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: theirs, namespace: acme-dev}
---
apiVersion: v1
kind: ConfigMapList
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: theirs-too, namespace: acme-dev}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: gone, namespace: acme-dev}}
`

// TestOthersObjectsAreLeft: what an operation has in its record because it lost the race for a name is not of the release,
// whether the release is upgraded from that record or taken down.
func TestOthersObjectsAreLeft(t *testing.T) {
	cases := map[string]struct {
		reason string
		status helm.Status
		do     func(e *helmEngine) error
	}{
		"Upgrade": {
			reason: "an upgrade after an install that failed",
			status: helm.StatusFailed,
			do:     func(e *helmEngine) error { return e.deploy(t.Context(), of("r:2", configMap)) },
		},
		"UpgradeOfDeployed": {
			reason: "an upgrade of what had an object that another release made anew",
			status: helm.StatusDeployed,
			do:     func(e *helmEngine) error { return e.deploy(t.Context(), of("r:2", configMap)) },
		},
		"Uninstall": {
			reason: "taking down what failed",
			status: helm.StatusFailed,
			do:     (*helmEngine).uninstall,
		},
		"UninstallInterrupted": {
			reason: "taking down what was interrupted",
			status: helm.StatusPendingInstall,
			do:     (*helmEngine).uninstall,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine()
			s := runtime.NewScheme()
			must(t, metav1.AddMetaToScheme(s))
			e.live = liveIn(t.Context(), fake.NewSimpleMetadataClient(s, owned("ours", e.name), owned("theirs", "acme-other"), owned("theirs-too", "")), mapper())
			built := &builds{Interface: e.cfg.KubeClient}
			e.cfg.KubeClient = built
			must(t, e.cfg.Releases.Create(&helm.Release{
				Name: e.name, Namespace: e.namespace, Version: 1, Info: &helm.Info{Status: tc.status},
				Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "runtime"}}, Manifest: fourObjects,
			}))
			must(t, tc.do(e))
			objs, err := render.Objects([]byte(built.with(t, "name: ours")))
			must(t, err)
			var left []string
			for _, obj := range objs {
				left = append(left, obj.GetName())
			}
			if diff := cmp.Diff([]string{"ours", "gone"}, left); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnknownOwner: whose an object is has to be known before anything is done.
func TestUnknownOwner(t *testing.T) {
	e, _ := newEngine()
	must(t, e.deploy(t.Context(), of("r:1", configMap)))
	e.live = func(*unstructured.Unstructured) (metav1.Object, error) {
		return nil, errors.New("the API server is away")
	}
	for name, do := range map[string]func() error{
		"upgrade": func() error { return e.deploy(t.Context(), of("r:2", configMap)) }, "uninstall": e.uninstall,
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "is away") {
			t.Errorf("%s: got %v, want to hear that the owners are not known", name, err)
		}
	}
	if diff := cmp.Diff([]string{"1 deployed r:1"}, e.records(t)); diff != "" {
		t.Error(diff)
	}
}

// TestListsAreTakenApart so that what is in them is stamped, counted and owned one by one.
func TestListsAreTakenApart(t *testing.T) {
	e, _ := newEngine()
	list := "apiVersion: v1\nkind: List\nitems:\n" +
		"- {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}\n" +
		"- {apiVersion: v1, kind: List, items: [{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: b}}]}\n"
	must(t, e.deploy(t.Context(), of("r:1", list)))
	last, err := e.cfg.Releases.Last(e.name)
	must(t, err)
	if last.Labels[labelWorkloads] != "2" {
		t.Errorf("%s workloads are counted, want 2", last.Labels[labelWorkloads])
	}
	objs, err := render.Objects([]byte(last.Manifest))
	must(t, err)
	for _, obj := range objs {
		if obj.GetLabels()["steading.dev/composite-uid"] != "uid-1" {
			t.Errorf("%s is not stamped", describe(obj))
		}
	}
	if len(objs) != 2 {
		t.Errorf("%d objects, want 2", len(objs))
	}
}

// builds notes the manifests that Helm makes objects of to act on.
type builds struct {
	kube.Interface
	read []string
}

// Build notes the manifest.
func (b *builds) Build(r io.Reader, validate bool) (kube.ResourceList, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	b.read = append(b.read, string(raw))
	return b.Interface.Build(bytes.NewReader(raw), validate)
}

// with returns the first of the manifests that has this text.
func (b *builds) with(t *testing.T, text string) string {
	t.Helper()
	i := slices.IndexFunc(b.read, func(m string) bool { return strings.Contains(m, text) })
	if i < 0 {
		t.Fatalf("Helm acted on none of what has %q, but on %q", text, b.read)
	}
	return b.read[i]
}
