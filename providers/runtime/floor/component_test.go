package floor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// rendered is what a component's chart renders.
func rendered(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := decode(strings.ReplaceAll(manifest, "\t", " "))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestOfComponent(t *testing.T) {
	const limits = `resources: {limits: {cpu: 200m, memory: 256Mi}}`
	cases := map[string]struct {
		reason   string
		manifest string
		want     *steading.Resources
	}{
		"Recreate": {
			reason:   "What is stopped before it is replaced needs its replicas.",
			manifest: `{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {type: Recreate}, replicas: 3, template: {spec: {containers: [{name: a, ` + limits + `}]}}}}`,
			want:     steading.MustResources("600m", "768Mi", "0"),
		},
		"Surge": {
			reason:   "A rolling update starts another pod before it stops one.",
			manifest: `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a, ` + limits + `}]}}}}`,
			want:     steading.MustResources("400m", "512Mi", "0"),
		},
		"SurgeByNumber": {
			reason:   "As many as the chart says.",
			manifest: `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 4, strategy: {rollingUpdate: {maxSurge: 2}}, template: {spec: {containers: [{name: a, ` + limits + `}]}}}}`,
			want:     steading.MustResources("1200m", "1536Mi", "0"),
		},
		"StatefulSet": {
			reason:   "Each replica has a volume of its own.",
			manifest: `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2, volumeClaimTemplates: [{spec: {resources: {requests: {storage: 3Gi}}}}], template: {spec: {containers: [{name: a, ` + limits + `}]}}}}`,
			want:     steading.MustResources("400m", "512Mi", "6Gi"),
		},
		"DefaultLimits": {
			reason:   "A container that says nothing is limited by the namespace: with 8 CPU and 16Gi to 500m and 512Mi.",
			manifest: `{apiVersion: apps/v1, kind: StatefulSet, spec: {template: {spec: {containers: [{name: a}, {name: b, resources: {limits: {memory: 1Gi}}}]}}}}`,
			want:     steading.MustResources("1", "1536Mi", "0"),
		},
		"Sidecar": {
			reason:   "An init container that goes on running counts as a container; one that ends, with those that run beside it already.",
			manifest: `{apiVersion: apps/v1, kind: StatefulSet, spec: {template: {spec: {initContainers: [{name: s, restartPolicy: Always, ` + limits + `}, {name: i, resources: {limits: {cpu: 1, memory: 64Mi}}}], containers: [{name: a, ` + limits + `}]}}}}`,
			want:     steading.MustResources("1200m", "512Mi", "0"),
		},
		"LateSidecar": {
			reason:   "One that is started after it does not run beside it.",
			manifest: `{apiVersion: apps/v1, kind: StatefulSet, spec: {template: {spec: {initContainers: [{name: i, resources: {limits: {cpu: 1, memory: 64Mi}}}, {name: s, restartPolicy: Always, ` + limits + `}], containers: [{name: a, ` + limits + `}]}}}}`,
			want:     steading.MustResources("1", "512Mi", "0"),
		},
		"DefaultLimitsBesideSidecars": {
			reason:   "What says nothing has its default in turn, too.",
			manifest: `{apiVersion: apps/v1, kind: StatefulSet, spec: {template: {spec: {initContainers: [{name: s, restartPolicy: Always}, {name: i}, {name: j}], containers: [{name: a, ` + limits + `}]}}}}`,
			want:     steading.MustResources("1", "1Gi", "0"),
		},
		"PodLevel": {
			reason:   "What limits a pod as a whole counts for it, resource by resource.",
			manifest: `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2, template: {spec: {resources: {limits: {cpu: 2}}, containers: [{name: a, ` + limits + `}]}}}}`,
			want:     steading.MustResources("4", "512Mi", "0"),
		},
		"Overhead": {
			reason:   "What it takes to run a pod comes on top.",
			manifest: `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2, template: {spec: {overhead: {cpu: 50m, memory: 64Mi}, containers: [{name: a, ` + limits + `}]}}}}`,
			want:     steading.MustResources("500m", "640Mi", "0"),
		},
		"Autoscaler": {
			reason: "An autoscaler starts its least at once, but of what is stopped.",
			manifest: `{apiVersion: v1, kind: List, items: [{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {minReplicas: 3, maxReplicas: 5, scaleTargetRef: {kind: StatefulSet, name: s}}}]}` + "\n---\n" +
				`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {minReplicas: 3, maxReplicas: 5, scaleTargetRef: {kind: Deployment, name: stopped}}}` + "\n---\n" +
				`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {volumeClaimTemplates: [{spec: {resources: {requests: {storage: 3Gi}}}}], template: {spec: {containers: [{name: a, ` + limits + `}]}}}}` + "\n---\n" +
				`{apiVersion: apps/v1, kind: Deployment, metadata: {name: stopped}, spec: {replicas: 0, template: {spec: {containers: [{name: a, ` + limits + `}]}}}}`,
			want: steading.MustResources("600m", "768Mi", "9Gi"),
		},
		"EphemeralVolume": {
			reason:   "A volume that lives as long as its pod is claimed for each.",
			manifest: `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2, template: {spec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 3Gi}}}}}}], containers: [{name: a, ` + limits + `}]}}}}`,
			want:     steading.MustResources("400m", "512Mi", "6Gi"),
		},
		"Jobs": {
			reason: "Jobs and what is run by the clock need room, too.",
			manifest: `{apiVersion: v1, kind: List, items: [{apiVersion: batch/v1, kind: Job, spec: {parallelism: 2, template: {spec: {containers: [{name: a, ` + limits + `}]}}}},` +
				`{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, ` + limits + `}]}}}}}}]}`,
			want: steading.MustResources("600m", "768Mi", "0"),
		},
		"Nothing": {reason: "A chart may need nothing.", manifest: `{apiVersion: v1, kind: ConfigMap}`, want: steading.MustResources("0", "0", "0")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n, err := OfComponent(rendered(t, tc.manifest))
			if err != nil {
				t.Fatalf("%s %v", tc.reason, err)
			}
			have := n.Within(*steading.MustResources("8", "16Gi", "8Gi"))
			if diff := cmp.Diff(tc.want.Amounts(), have.Amounts()); diff != "" {
				t.Errorf("%s -want, +have:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOfComponentSaysWhatCannotBeTold(t *testing.T) {
	for name, tc := range map[string]struct{ manifest, want string }{
		"Negative": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {replicas: -1}}`, "cannot tell what StatefulSet s needs: it asks for -1 pods"},
		"Shape":    {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: many}}`, "cannot tell what Deployment d needs"},
		"Amount":   {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p}, spec: {resources: {requests: {storage: "1e-999999999"}}}}`, "cannot tell what PersistentVolumeClaim p needs: spec.resources.requests.storage is too large or too small"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := OfComponent(rendered(t, tc.manifest)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("have %v, want %q", err, tc.want)
			}
		})
	}
}
