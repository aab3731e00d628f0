//go:build node

package node

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/test/harness"
)

// Versions of the runtime: one that no registry has, and one that does not come up.
const (
	versionMissing = "0.0.1-missing"
	versionCrash   = "0.0.1-crash"
)

// deployed is what an environment's condition Deployed says, which its message says too.
type deployed struct {
	phase  steading.EnvironmentPhase
	reason string
	parts  []string
}

// waitDeployed waits until the claim says that. No poll brings it there: they are an hour apart.
func waitDeployed(t *testing.T, e *steading.Environment, want deployed) {
	t.Helper()
	suite.WaitFor(t, e, want.reason, func(e *steading.Environment) bool {
		status, reason, message := harness.Condition(e, string(steading.ConditionDeployed))
		for _, p := range want.parts {
			if !strings.Contains(message, p) {
				return false
			}
		}
		return e.Status.Phase == want.phase && status == "False" && reason == want.reason
	})
	t.Logf("the claim says: %s", e.Status.Message)
}

// TestFailuresInTheirOwnWords: a version that there is none of, and one that crashes, are told on the claim as the container
// runtime and the container tell it. With another version they run.
func TestFailuresInTheirOwnWords(t *testing.T) {
	suite.NewTenant(t, "fails", steading.TenantSpec{})
	pushProgram(t, "crash", "devops", versionCrash)
	cases := map[string]struct {
		version string
		want    deployed
	}{
		"missing": {version: versionMissing, want: deployed{steading.EnvironmentFailed, string(steading.ReasonImagePull), []string{"container devops: cannot pull image", ":0.0.1-missing", "not found"}}},
		"crash":   {version: versionCrash, want: deployed{steading.EnvironmentFailed, string(steading.ReasonContainerCrashing), []string{"container devops", "exit code 3", "cannot read the settings"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := harness.Environment("fails", name)
			e.Spec.Version = tc.version
			suite.Create(t, e)
			waitDeployed(t, e, tc.want)
			harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Version = "1.4.2" })
			suite.WaitFor(t, e, "ready", harness.Ready)
			wantTold(t, "fails", name, "1.4.2")
			suite.Delete(t, e)
			suite.WantGone(t, e)
		})
	}
}

// TestQuotaExceeded: where somebody else took what the runtime needs, the claim says what the quota said.
func TestQuotaExceeded(t *testing.T) {
	suite.NewTenant(t, "tight", steading.TenantSpec{})
	probe := pushProgram(t, "probe", "probe", "1")
	e := harness.Environment("tight", "dev")
	e.Spec.Size, e.Spec.State = steading.MustResources("4", "16Gi", "2Gi"), steading.StateStopped
	suite.Create(t, e)
	suite.WaitFor(t, e, "stopped", harness.Ready)
	// It waits for as long as nothing answers, and is started again.
	greedy := pod("tight-dev", "greedy", probe.Pinned(), "192.0.2.1:1")
	greedy.Spec.RestartPolicy = corev1.RestartPolicyAlways
	suite.Create(t, greedy)

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.State = steading.StateRunning })
	waitDeployed(t, e, deployed{steading.EnvironmentFailed, string(steading.ReasonQuotaExceeded), []string{
		"exceeded quota: steading-quota", "requested: limits.cpu=4", "used: limits.cpu=100m", "limited: limits.cpu=4",
	}})
	suite.Delete(t, greedy)
	suite.WaitFor(t, e, "started", func(e *steading.Environment) bool { return harness.Ready(e) && e.Status.Power == steading.PowerRunning })
	wantTold(t, "tight", "dev", "1.4.2")
}

// TestUnschedulable: no node takes the pod, the claim says so in the scheduler's words, and it runs as soon as one does.
func TestUnschedulable(t *testing.T) {
	suite.NewTenant(t, "nonode", steading.TenantSpec{})
	cordon(t, true)
	t.Cleanup(func() {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: local.NodeName}}
		_ = suite.Admin.Patch(context.Background(), n, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"unschedulable":null}}`)))
	})
	e := harness.Environment("nonode", "dev")
	suite.Create(t, e)
	waitDeployed(t, e, deployed{steading.EnvironmentProvisioning, string(steading.ReasonUnschedulable), []string{"no node takes the pod: ", "1 node(s) were unschedulable"}})
	cordon(t, false)
	suite.WaitFor(t, e, "ready", harness.Ready)
	wantTold(t, "nonode", "dev", "1.4.2")
}

func cordon(t *testing.T, unschedulable bool) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: local.NodeName}}
	harness.Change(t, &suite, n, func(n *corev1.Node) { n.Spec.Unschedulable = unschedulable })
}

// TestFailedUpgradeRollsBack: a new version that does not come up is undone without anybody's help, and the claim says so.
func TestFailedUpgradeRollsBack(t *testing.T) {
	suite.NewTenant(t, "rolls", steading.TenantSpec{})
	pushProgram(t, "crash", "devops", versionCrash)
	e := harness.Environment("rolls", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	uid := suite.CompositeUID(t, "rolls", "dev")

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Version = versionCrash })
	waitDeployed(t, e, deployed{steading.EnvironmentRunning, string(steading.ReasonRolledBack), []string{
		"version 0.0.1-crash failed and was rolled back to version 1.4.2", "ContainerCrashing", "cannot read the settings",
	}})
	wantTold(t, "rolls", "dev", "1.4.2")
	if e.Status.DeployedVersion != "1.4.2" || harness.Ready(e) {
		t.Errorf("deployed version %s, ready %t", e.Status.DeployedVersion, harness.Ready(e))
	}
	suite.WantUsage(t, uid, runtimev1.TransitionProvisioned)
}

// pod that runs an image with arguments, once, held to what Pod Security calls restricted.
func pod(namespace, name, image string, args ...string) *corev1.Pod {
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy:   corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: name, Image: image, Args: args,
				Resources: corev1.ResourceRequirements{Limits: limits, Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}
