package release

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func deploymentOf(change ...func(*appsv1.Deployment)) appsv1.Deployment {
	d := appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme-dev", Name: "acme-devops", UID: "d", Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To(int32(1))},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated"}},
		},
	}
	for _, c := range change {
		c(&d)
	}
	return d
}

func available(d *appsv1.Deployment) {
	d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = 1, 1, 0
	d.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
	}
}

func unseen(d *appsv1.Deployment) { available(d); d.Generation = 3 }

func scaledToZero(d *appsv1.Deployment) {
	d.Spec.Replicas = ptr.To(int32(0))
	d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.UnavailableReplicas = 0, 0, 0
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
}

func replicaSet(name, revision string, conditions ...appsv1.ReplicaSetCondition) appsv1.ReplicaSet {
	return appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Annotations: map[string]string{"deployment.kubernetes.io/revision": revision}, OwnerReferences: []metav1.OwnerReference{{UID: "d", Controller: ptr.To(true)}}},
		Status:     appsv1.ReplicaSetStatus{Conditions: conditions},
	}
}

func podOf(rs string, status corev1.PodStatus) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: rs + "-pod", OwnerReferences: []metav1.OwnerReference{{UID: types.UID(rs), Controller: ptr.To(true)}}}, Status: status}
}

func waitingFor(reason, message string, last *corev1.ContainerStateTerminated) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "devops", Image: "r:2", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		LastTerminationState: corev1.ContainerState{Terminated: last},
	}}}
}

func unschedulable(since time.Duration) corev1.PodStatus {
	return corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/1 nodes are available: 1 Insufficient cpu.", LastTransitionTime: metav1.NewTime(now.Add(-since)),
	}}}
}

func TestRolledOut(t *testing.T) {
	two := []appsv1.ReplicaSet{replicaSet("old", "9"), replicaSet("new", "10")}
	cases := map[string]struct {
		reason string
		w      workloads
		power  steading.Power
		want   rollout
		// expected workloads
		expected int
	}{
		"Done":     {reason: "all are available", w: workloads{deployments: []appsv1.Deployment{deploymentOf(available)}}, want: rollout{done: true}},
		"Nothing":  {reason: "a chart without workloads has nothing to roll out", want: rollout{done: true}},
		"Missing":  {reason: "a workload was deleted", expected: 1, want: rollout{missing: true, reason: steading.ReasonRollingOut, message: "1 of 1 workloads were deleted; they are made anew"}},
		"Waiting":  {reason: "the Deployment waits", w: workloads{deployments: []appsv1.Deployment{deploymentOf()}}, want: rollout{reason: steading.ReasonRollingOut, message: "Deployment acme-devops is rolling out"}},
		"Unseen":   {reason: "the controller has not seen the change yet, so that its status is of the one before", w: workloads{deployments: []appsv1.Deployment{deploymentOf(unseen)}}, want: rollout{reason: steading.ReasonRollingOut, message: "Deployment acme-devops is rolling out"}},
		"Stopped":  {reason: "scaled to zero with no pod left", w: workloads{deployments: []appsv1.Deployment{deploymentOf(scaledToZero)}}, power: steading.PowerStopped, want: rollout{done: true}},
		"Stopping": {reason: "a pod is left", w: workloads{deployments: []appsv1.Deployment{deploymentOf(scaledToZero)}, replicaSets: two, pods: []corev1.Pod{podOf("new", corev1.PodStatus{})}}, power: steading.PowerStopped, want: rollout{reason: steading.ReasonRollingOut, message: "pods are stopping"}},
		"Pull": {
			reason: "the kubelet's own word", w: workloads{deployments: []appsv1.Deployment{deploymentOf()}, replicaSets: two, pods: []corev1.Pod{podOf("new", waitingFor("ErrImagePull", "r:2: not found", nil))}},
			want: rollout{failing: true, reason: steading.ReasonImagePull, message: "container devops: cannot pull image r:2: not found"},
		},
		"PullBackOff": {
			reason: "says the same as what it backs off from", w: workloads{deployments: []appsv1.Deployment{deploymentOf()}, replicaSets: two, pods: []corev1.Pod{podOf("new", waitingFor("ImagePullBackOff", `Back-off pulling image "r:2": ErrImagePull: r:2: not found`, nil))}},
			want: rollout{failing: true, reason: steading.ReasonImagePull, message: "container devops: cannot pull image r:2: not found"},
		},
		"PullOfTheOld": {
			reason: "what an older ReplicaSet's pod says is past", w: workloads{deployments: []appsv1.Deployment{deploymentOf()}, replicaSets: two, pods: []corev1.Pod{podOf("old", waitingFor("ErrImagePull", "r:1: not found", nil))}},
			want: rollout{reason: steading.ReasonRollingOut, message: "Deployment acme-devops is rolling out"},
		},
		"Crash": {
			reason: "how it ended, not how often nor how long the kubelet waits", w: workloads{deployments: []appsv1.Deployment{deploymentOf()}, replicaSets: two, pods: []corev1.Pod{podOf("new", waitingFor("CrashLoopBackOff", "back-off 5m0s restarting failed container", &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}))}},
			want: rollout{failing: true, reason: steading.ReasonContainerCrashing, message: "container devops keeps crashing: exit code 137 (OOMKilled)"},
		},
		"Quota": {
			reason: "the pod was never made", w: workloads{deployments: []appsv1.Deployment{deploymentOf()}, replicaSets: []appsv1.ReplicaSet{replicaSet("new", "10", appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "pods is forbidden: exceeded quota: steading-quota, requested: limits.cpu=8, used: limits.cpu=4, limited: limits.cpu=8"})}},
			want: rollout{failing: true, reason: steading.ReasonQuotaExceeded, message: "pods is forbidden: exceeded quota: steading-quota, requested: limits.cpu=8, used: limits.cpu=4, limited: limits.cpu=8"},
		},
		"PodSecurity": {
			reason: "nor was this one", w: workloads{deployments: []appsv1.Deployment{deploymentOf()}, replicaSets: []appsv1.ReplicaSet{replicaSet("new", "10", appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "pods is forbidden: violates PodSecurity"})}},
			want: rollout{failing: true, reason: steading.ReasonDeployFailed, message: "pods is forbidden: violates PodSecurity"},
		},
		"Unschedulable": {
			reason: "said soon, a failure only after a while", w: workloads{deployments: []appsv1.Deployment{deploymentOf()}, replicaSets: two, pods: []corev1.Pod{podOf("new", unschedulable(10*time.Second))}},
			want: rollout{reason: steading.ReasonUnschedulable, message: "no node takes the pod: 0/1 nodes are available: 1 Insufficient cpu.", settled: 20 * time.Second},
		},
		"UnschedulableForAMoment": {
			reason: "that is what a pod is until its claims are bound", w: workloads{deployments: []appsv1.Deployment{deploymentOf()}, replicaSets: two, pods: []corev1.Pod{podOf("new", unschedulable(time.Second))}},
			want: rollout{reason: steading.ReasonRollingOut, message: "Deployment acme-devops is rolling out", settled: 2 * time.Second},
		},
		"UnschedulableForLong": {
			reason: "that is now", w: workloads{deployments: []appsv1.Deployment{deploymentOf()}, replicaSets: two, pods: []corev1.Pod{podOf("new", unschedulable(time.Minute))}},
			want: rollout{failing: true, reason: steading.ReasonUnschedulable, message: "no node takes the pod: 0/1 nodes are available: 1 Insufficient cpu."},
		},
		"Deadline": {
			reason: "the Deployment gave up", w: workloads{deployments: []appsv1.Deployment{deploymentOf(func(d *appsv1.Deployment) {
				d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "ReplicaSet has timed out progressing."}}
			})}},
			want: rollout{failing: true, reason: steading.ReasonDeployFailed, message: "Deployment acme-devops: ReplicaSet has timed out progressing."},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.w.rolledOut(tc.expected, tc.power, now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(rollout{})); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}
