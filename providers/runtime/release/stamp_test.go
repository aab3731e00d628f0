package release

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/providers/runtime/render"
)

func TestStamp(t *testing.T) {
	const rendered = `
---
# Source: runtime/templates/deployment.yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, labels: {app.kubernetes.io/managed-by: Helm}}
spec:
  replicas: 1
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec: {containers: [{name: c, image: i}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: c}
spec:
  schedule: "@daily"
  jobTemplate:
    spec:
      template:
        spec: {containers: [{name: c, image: i}]}
---
---
apiVersion: v1
kind: ConfigMap
metadata: {name: m}
data: {number: "9007199254740993"}
`
	s := stamp{identity: id, namespace: "acme-dev", mapper: mapper()}
	objs, err := render.Objects([]byte(rendered))
	must(t, err)
	m, err := s.all(objs)
	must(t, err)
	out := string(m)
	want := map[string][][]string{
		"Deployment": {{"metadata"}, {"spec", "template", "metadata"}},
		"CronJob":    {{"metadata"}, {"spec", "jobTemplate", "metadata"}, {"spec", "jobTemplate", "spec", "template", "metadata"}},
		"ConfigMap":  {{"metadata"}},
	}
	for _, doc := range strings.Split(out, "---\n")[1:] {
		obj := map[string]any{}
		if err := yaml.Unmarshal([]byte(doc), &obj); err != nil {
			t.Fatal(err)
		}
		u := unstructured.Unstructured{Object: obj}
		if u.GetNamespace() != "acme-dev" {
			t.Errorf("%s is in namespace %q", u.GetKind(), u.GetNamespace())
		}
		for _, path := range want[u.GetKind()] {
			for _, in := range []string{"labels", "annotations"} {
				got, _, err := unstructured.NestedStringMap(obj, append(path, in)...)
				if err != nil {
					t.Fatal(err)
				}
				for k, v := range labels(id) {
					if got[k] != v {
						t.Errorf("%s %v has %s %v, want %s=%s among them", u.GetKind(), path, in, got, k, v)
					}
				}
			}
		}
		delete(want, u.GetKind())
	}
	if diff := cmp.Diff(map[string][][]string{}, want); diff != "" {
		t.Errorf("not all objects came out: %s", diff)
	}
	if strings.Contains(out, "matchLabels:\n      app: d\n      steading") {
		t.Error("selectors never change")
	}
}
