package floor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

func TestSum(t *testing.T) {
	const claim = `
apiVersion: v1
kind: PersistentVolumeClaim
spec: {resources: {requests: {storage: 3Gi}}}
`
	deployment := func(spec string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nspec: " + spec
	}
	type want struct {
		floor steading.Resources
		err   string
	}
	cases := map[string]struct {
		reason   string
		manifest string
		want     want
	}{
		"ContainersTogether": {
			reason: "containers run at the same time",
			manifest: claim + "---\n" + deployment(`{strategy: {type: Recreate}, template: {spec: {
				initContainers: [{name: i, resources: {limits: {cpu: 2, memory: 1Gi}}}],
				containers: [{name: a, resources: {limits: {cpu: 2, memory: 1Gi}}}, {name: b, resources: {limits: {cpu: 500m, memory: 1Gi}}}]}}}`) + "\n---\n" + claim,
			want: want{floor: resources("2500m", "2Gi", "6Gi")},
		},
		"InitInTurn": {
			reason: "init containers run one after another, each resource counts by itself",
			manifest: deployment(`{strategy: {type: Recreate}, template: {spec: {
				initContainers: [{name: i, resources: {limits: {cpu: 4, memory: 1Gi}}}, {name: j, resources: {limits: {cpu: 1, memory: 3Gi}}}],
				containers: [{name: a, resources: {limits: {cpu: 2, memory: 2Gi}}}]}}}`),
			want: want{floor: resources("4", "3Gi", "0")},
		},
		"Replicas": {
			reason:   "all replicas count",
			manifest: deployment(`{replicas: 3, strategy: {type: Recreate}, template: {spec: {containers: [{name: a, resources: {limits: {cpu: 2, memory: 2Gi}}}]}}}`),
			want:     want{floor: resources("6", "6Gi", "0")},
		},
		"Unsized": {
			reason:   "what has no limit cannot be summed up",
			manifest: deployment(`{strategy: {type: Recreate}, template: {spec: {containers: [{name: a, resources: {limits: {cpu: 2}}}]}}}`),
			want:     want{err: "container a has no limit for cpu or memory"},
		},
		"Surge": {
			reason:   "a rolling update needs more than its replicas",
			manifest: deployment(`{template: {spec: {containers: [{name: a, resources: {limits: {cpu: 2, memory: 2Gi}}}]}}}`),
			want:     want{err: `only "Recreate" is counted`},
		},
		"Sidecar": {
			reason: "an init container that goes on running would count as a container",
			manifest: deployment(`{strategy: {type: Recreate}, template: {spec: {
				initContainers: [{name: i, restartPolicy: Always, resources: {limits: {cpu: 4, memory: 1Gi}}}]}}}`),
			want: want{err: "init container i is a sidecar"},
		},
		"OtherWorkload": {
			reason:   "a kind that is not counted must not count as nothing",
			manifest: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}",
			want:     want{err: "cannot tell what Job j needs"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := decode(strings.ReplaceAll(tc.manifest, "\t", " "))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Sum(objects)
			if tc.want.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want.err) {
					t.Errorf("%s: want an error that says %q, got: %v", tc.reason, tc.want.err, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want.floor, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func resources(cpu, memory, storage string) steading.Resources {
	return steading.Resources{CPU: resource.MustParse(cpu), Memory: resource.MustParse(memory), Storage: resource.MustParse(storage)}
}
