package release

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(text), &obj.Object))
	return obj
}

// Three versions of a Deployment, each of which has what the others have not.
var versions = map[string]string{
	"1": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {one: "1"}}, spec: {replicas: 1, strategy: {type: Recreate}, template: {spec: {
		nodeSelector: {disk: fast}, volumes: [{name: data, emptyDir: {}}],
		containers: [{name: app, image: "a:1", args: [one], env: [{name: ONE, value: "1"}]}, {name: old, image: "o:1", ports: [{containerPort: 80}]}]}}}}`,
	"2": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {two: "2"}}, spec: {template: {spec: {
		nodeSelector: null, volumes: [{name: data, persistentVolumeClaim: {claimName: d}}], serviceAccountName: two,
		containers: [{name: app, image: "a:2", env: [{name: TWO, value: "2"}]}, {name: sidecar, image: "s:2"}]}}}}`,
	"3": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {
		containers: [{name: app, image: "a:3", args: [three], env: [{name: ONE, value: "3"}]}]}}}}`,
}

// TestJoinedComesOutWhole: whether the object on the cluster is as the version that served has it or as the one that failed, the
// patch that Helm makes gives the next version and nothing else.
func TestJoinedComesOutWhole(t *testing.T) {
	before := joined(objectOf(t, versions["1"]), objectOf(t, versions["2"]))
	for _, live := range []string{"1", "2"} {
		for _, next := range []string{"1", "3"} {
			t.Run(live+"to"+next, func(t *testing.T) {
				have, want := objectOf(t, versions[live]), objectOf(t, versions[next])
				patch, err := strategicpatch.CreateThreeWayMergePatch(marshalled(t, before), marshalled(t, want), marshalled(t, have), fieldsOf(want), true)
				must(t, err)
				got, err := strategicpatch.StrategicMergePatch(marshalled(t, have), patch, &appsv1.Deployment{})
				must(t, err)
				after := &unstructured.Unstructured{}
				must(t, json.Unmarshal(got, &after.Object))
				if diff := cmp.Diff(typed(t, want), typed(t, after)); diff != "" {
					t.Errorf("-want +got\n%s\npatch %s", diff, patch)
				}
			})
		}
	}
}

// typed is a Deployment as the server takes it, which is told no difference between what is empty and what is not there.
func typed(t *testing.T, obj *unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	must(t, json.Unmarshal(marshalled(t, obj), d))
	if len(d.Labels) == 0 {
		d.Labels = nil
	}
	return d
}

func marshalled(t *testing.T, obj *unstructured.Unstructured) []byte {
	t.Helper()
	raw, err := json.Marshal(obj.Object)
	must(t, err)
	return raw
}

// TestJoinedOfUnknownKind: Helm patches what differs between the two manifests, whatever there is. So they have to differ
// wherever the object may.
func TestJoinedOfUnknownKind(t *testing.T) {
	cases := map[string]struct {
		reason     string
		a, b, want string
	}{
		"Equal":     {reason: "what is in both is there", a: "{x: 1, l: [1], m: {}}", b: "{x: 1, l: [1], m: {}}", want: "{x: 1, l: [1], m: {}}"},
		"Differs":   {reason: "what differs is neither's", a: "{x: 1, l: [1]}", b: "{x: 2, l: [2]}", want: "{x: null, l: null}"},
		"OneOnly":   {reason: "nor is what only one has", a: "{x: 1, e: {}}", b: "{y: 2}", want: "{x: null, y: null, e: null}"},
		"Inside":    {reason: "field by field", a: "{m: {x: 1, y: 1, deep: {z: 1}}}", b: "{m: {x: 1, y: 2}}", want: "{m: {x: 1, y: null, deep: {z: null}}}"},
		"OtherType": {reason: "of whatever type", a: "{x: {y: 1}}", b: "{x: 1}", want: "{x: {y: null}}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := func(spec string) *unstructured.Unstructured {
				return objectOf(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: "+spec+"}")
			}
			if diff := cmp.Diff(of(tc.want), joined(of(tc.a), of(tc.b))); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
	other := objectOf(t, "{apiVersion: example.com/v2, kind: Widget, metadata: {name: w}}")
	if got := joined(objectOf(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}"), other); got != other {
		t.Errorf("two versions of a kind cannot be put together: got %v", got)
	}
}
