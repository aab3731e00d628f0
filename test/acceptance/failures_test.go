package acceptance

import (
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// Versions whose pods fail as testdata/stages.yaml plays it.
const (
	versionNoPull = "0.0.1-nopull"
	versionCrash  = "0.0.1-crash"
)

var stages sync.Once

// playFailures has KWOK play the failures of the versions that fail.
func playFailures(t *testing.T) {
	t.Helper()
	stages.Do(func() {
		if err := suite.Plane.ApplyFiles(t.Context(), "testdata/stages.yaml"); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFailuresInTheirOwnWords: what keeps an environment from running is on the claim, as the pod, or whoever did not make
// it, says it. With that mended it runs.
func TestFailuresInTheirOwnWords(t *testing.T) {
	t.Parallel()
	playFailures(t)
	suite.NewTenant(t, "fails", steading.TenantSpec{Quota: steading.Quota{PerEnvironment: steading.MustResources("32", "64Gi", "80Gi")}})
	cases := map[string]struct {
		version string
		want    string
		parts   []string
	}{
		"nopull": {version: versionNoPull, want: string(steading.ReasonImagePull), parts: []string{"container devops: cannot pull image", ":0.0.1-nopull: not found"}},
		"crash":  {version: versionCrash, want: string(steading.ReasonContainerCrashing), parts: []string{"container devops keeps crashing: exit code 3: cannot read the settings"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.Environment("fails", name)
			e.Spec.Version = tc.version
			suite.Create(t, e)
			suite.WaitFor(t, e, "failed", func(e *steading.Environment) bool {
				status, reason, message := harness.Condition(e, string(steading.ConditionDeployed))
				return e.Status.Phase == steading.EnvironmentFailed && status == "False" && reason == tc.want &&
					containsAll(message, tc.parts) && e.Status.Message == message
			})
			uid := suite.CompositeUID(t, "fails", name)
			suite.WantUsage(t, uid)

			harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Version = "1.4.2" })
			suite.WaitFor(t, e, "ready", harness.Ready)
			suite.WantUsage(t, uid, runtimev1.TransitionProvisioned)
			wantReadyPod(t, "fails-"+name)
		})
	}
}

// TestFailedUpgradeRollsBack: a new version that does not come up is undone without anybody's help, and the claim says so.
func TestFailedUpgradeRollsBack(t *testing.T) {
	t.Parallel()
	playFailures(t)
	suite.NewTenant(t, "rolls", steading.TenantSpec{})
	e := harness.Environment("rolls", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	uid := suite.CompositeUID(t, "rolls", "dev")

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Version = versionCrash })
	suite.WaitFor(t, e, "rolled back", func(e *steading.Environment) bool {
		status, reason, message := harness.Condition(e, string(steading.ConditionDeployed))
		return e.Status.Phase == steading.EnvironmentRunning && status == "False" && reason == string(steading.ReasonRolledBack) &&
			containsAll(message, []string{"version 0.0.1-crash failed and was rolled back to version 1.4.2", "ContainerCrashing", "exit code 3: cannot read the settings"}) &&
			servesVersion(t, "rolls-dev", "1.4.2")
	})
	if e.Status.DeployedVersion != "1.4.2" || harness.Ready(e) {
		t.Errorf("deployed version %s, ready %t", e.Status.DeployedVersion, harness.Ready(e))
	}
	suite.WantUsage(t, uid, runtimev1.TransitionProvisioned)

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Version = "1.4.3" })
	suite.WaitFor(t, e, "ready at 1.4.3", func(e *steading.Environment) bool { return harness.Ready(e) && e.Status.DeployedVersion == "1.4.3" })
	suite.WantUsage(t, uid, runtimev1.TransitionProvisioned, runtimev1.TransitionProvisioned)
}

// servesVersion reports whether the one pod that is left is ready and of a version.
func servesVersion(t *testing.T, namespace, version string) bool {
	t.Helper()
	pods := podsIn(t, namespace)
	return len(pods) == 1 && strings.HasSuffix(pods[0].Spec.Containers[0].Image, ":"+version) && podReady(pods[0])
}

func podsIn(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := suite.Admin.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

func podReady(p corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
