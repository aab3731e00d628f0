package runnernode

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// report the status of a pod, for as long as it takes.
func (n *Node) report(ctx context.Context, pod *corev1.Pod, s corev1.PodStatus) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": s})
	if err != nil {
		panic(err) // Of our own making.
	}
	n.again(ctx, func() error {
		_, err := n.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}

// creating is a pod whose volumes are not there yet.
func creating(pod *corev1.Pod) corev1.PodStatus {
	s := status(corev1.PodPending, corev1.ConditionFalse, corev1.ConditionFalse)
	s.InitContainerStatuses = each(pod.Spec.InitContainers, waiting("PodInitializing", ""))
	s.ContainerStatuses = each(pod.Spec.Containers, waiting("PodInitializing", ""))
	return s
}

// unpulled is a pod whose runner's image is not there.
func unpulled(pod *corev1.Pod) corev1.PodStatus {
	s := status(corev1.PodPending, corev1.ConditionTrue, corev1.ConditionFalse)
	s.InitContainerStatuses = each(pod.Spec.InitContainers, exited(ending{reason: "Completed"}))
	s.ContainerStatuses = each(pod.Spec.Containers, waiting("PodInitializing", ""))
	for i, c := range pod.Spec.Containers {
		if isRunner(c) {
			s.ContainerStatuses[i].State = waiting("ErrImagePull", fmt.Sprintf("rpc error: code = NotFound desc = failed to pull and unpack image %[1]q: failed to resolve reference %[1]q: %[1]s: not found", c.Image))
		}
	}
	return s
}

// running is a pod that runs.
func running(pod *corev1.Pod) corev1.PodStatus {
	s := status(corev1.PodRunning, corev1.ConditionTrue, corev1.ConditionTrue)
	now := metav1.Now()
	s.StartTime = &now
	s.InitContainerStatuses = each(pod.Spec.InitContainers, exited(ending{reason: "Completed"}))
	s.ContainerStatuses = each(pod.Spec.Containers, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}})
	for i := range s.ContainerStatuses {
		s.ContainerStatuses[i].Ready, s.ContainerStatuses[i].Started = true, new(true)
	}
	return s
}

// exiting is a pod whose runner ended a moment ago: a kubelet says so of the containers, and of the pod once it took it down.
func exiting(pod *corev1.Pod, e ending) corev1.PodStatus {
	s := status(corev1.PodRunning, corev1.ConditionTrue, corev1.ConditionFalse)
	s.InitContainerStatuses = each(pod.Spec.InitContainers, exited(ending{reason: "Completed"}))
	s.ContainerStatuses = each(pod.Spec.Containers, exited(e))
	return s
}

// terminated is a pod whose runner ended.
func terminated(pod *corev1.Pod, e ending) corev1.PodStatus {
	phase := corev1.PodSucceeded
	if e.code != 0 {
		phase = corev1.PodFailed
	}
	s := exiting(pod, e)
	s.Phase = phase
	return s
}

func status(phase corev1.PodPhase, initialized, ready corev1.ConditionStatus) corev1.PodStatus {
	s, now := corev1.PodStatus{Phase: phase}, metav1.Now()
	for kind, is := range map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodScheduled: corev1.ConditionTrue, corev1.PodInitialized: initialized, corev1.ContainersReady: ready, corev1.PodReady: ready,
	} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: is, LastTransitionTime: now})
	}
	return s
}

// each container is in the same state.
func each(all []corev1.Container, state corev1.ContainerState) []corev1.ContainerStatus {
	s := make([]corev1.ContainerStatus, len(all))
	for i, c := range all {
		s[i] = corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state}
	}
	return s
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func exited(e ending) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: int32(e.code), Reason: e.reason, Message: e.message, FinishedAt: metav1.Now(), //nolint:gosec // Exit codes are small.
	}}
}
