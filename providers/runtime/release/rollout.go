package release

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/pods"
)

// schedulingPatience is how long a pod may wait for a node or a volume before that is called a failure. Claims are bound,
// and nodes added, in the meantime.
const schedulingPatience = 30 * time.Second

// schedulingQuiet is how long that is not even mentioned: until its claims are bound, every pod waits a moment.
const schedulingQuiet = 3 * time.Second

// releaseNameAnnotation is Helm's.
const releaseNameAnnotation = "meta.helm.sh/release-name"

// workloads of a release, as they are.
type workloads struct {
	deployments  []appsv1.Deployment
	statefulSets []appsv1.StatefulSet
	replicaSets  []appsv1.ReplicaSet
	pods         []corev1.Pod
}

// readWorkloads of the release in its namespace.
func readWorkloads(ctx context.Context, r client.Reader, p v1alpha1.ReleaseParameters) (workloads, error) {
	var (
		deployments  appsv1.DeploymentList
		statefulSets appsv1.StatefulSetList
		replicaSets  appsv1.ReplicaSetList
		pods         corev1.PodList
	)
	for _, l := range []client.ObjectList{&deployments, &statefulSets, &replicaSets, &pods} {
		if err := r.List(ctx, l, client.InNamespace(p.Namespace), client.MatchingLabels{names.LabelEnvironment: p.Identity.Environment}); err != nil {
			return workloads{}, errors.Wrapf(err, "cannot list the workloads in namespace %s", p.Namespace)
		}
	}
	w := workloads{}
	for _, d := range deployments.Items {
		if d.Annotations[releaseNameAnnotation] == p.ReleaseName {
			w.deployments = append(w.deployments, d)
		}
	}
	for _, s := range statefulSets.Items {
		if s.Annotations[releaseNameAnnotation] == p.ReleaseName {
			w.statefulSets = append(w.statefulSets, s)
		}
	}
	for _, rs := range replicaSets.Items {
		if slices.ContainsFunc(w.deployments, func(d appsv1.Deployment) bool { return metav1.IsControlledBy(&rs, &d) }) {
			w.replicaSets = append(w.replicaSets, rs)
		}
	}
	for _, pod := range pods.Items {
		if w.owns(&pod) {
			w.pods = append(w.pods, pod)
		}
	}
	slices.SortFunc(w.pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return w, nil
}

func (w workloads) owns(pod *corev1.Pod) bool {
	return slices.ContainsFunc(w.replicaSets, func(rs appsv1.ReplicaSet) bool { return metav1.IsControlledBy(pod, &rs) }) ||
		slices.ContainsFunc(w.statefulSets, func(s appsv1.StatefulSet) bool { return metav1.IsControlledBy(pod, &s) })
}

// A rollout is how far the workloads have come.
type rollout struct {
	// done: all are as they should be.
	done bool
	// missing: some were deleted.
	missing bool
	// failing: they will not get there by themselves, as far as anyone can tell.
	failing bool
	// reason and message when not done.
	reason  xpv2.ConditionReason
	message string
	// settled is when to look again even if nothing changes. Zero: never.
	settled time.Duration
}

// rolledOut finds out how far the workloads have come, in the words of the pod or controller that is in the way.
func (w workloads) rolledOut(expected int, power steading.Power, now time.Time) (rollout, error) {
	if n := len(w.deployments) + len(w.statefulSets); n < expected {
		return rollout{missing: true, reason: steading.ReasonRollingOut, message: fmt.Sprintf("%d of %d workloads were deleted; they are made anew", expected-n, expected)}, nil
	}
	waiting, err := w.waiting()
	if err != nil {
		return rollout{}, err
	}
	if power == steading.PowerStopped && waiting == "" && len(w.pods) > 0 {
		waiting = "pods are stopping"
	}
	if waiting == "" {
		return rollout{done: true}, nil
	}
	for _, find := range []func(string, time.Time) (rollout, bool){w.refusedPods, w.failedPods, w.unscheduledPods, w.pastDeadline} {
		if r, found := find(waiting, now); found {
			return r, nil
		}
	}
	return rollout{reason: steading.ReasonRollingOut, message: waiting}, nil
}

// waiting is what is not done yet, empty when nothing. It does not say how far it is: every word of status that changes is
// paid for all the way up to the claim.
func (w workloads) waiting() (string, error) {
	objs := make([]client.Object, 0, len(w.deployments)+len(w.statefulSets))
	for i := range w.deployments {
		w.deployments[i].SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		objs = append(objs, &w.deployments[i])
	}
	for i := range w.statefulSets {
		w.statefulSets[i].SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
		objs = append(objs, &w.statefulSets[i])
	}
	for _, obj := range objs {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return "", errors.Wrapf(err, "cannot read the status of %s", obj.GetName())
		}
		result, err := status.Compute(&unstructured.Unstructured{Object: content})
		if err != nil {
			return "", errors.Wrapf(err, "cannot read the status of %s", obj.GetName())
		}
		if result.Status != status.CurrentStatus {
			return fmt.Sprintf("%s %s is rolling out", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName()), nil
		}
	}
	return "", nil
}

// refusedPods were never made: over the quota, or against the namespace's Pod Security level.
func (w workloads) refusedPods(string, time.Time) (rollout, bool) {
	for _, rs := range w.current() {
		for _, c := range rs.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
				return refusedPod(c.Message), true
			}
		}
	}
	return rollout{}, false
}

// refusedPod is a rollout whose controller was told this when it wanted to make a pod.
func refusedPod(message string) rollout {
	r := rollout{failing: true, reason: steading.ReasonDeployFailed, message: message}
	if strings.Contains(message, "exceeded quota") || strings.Contains(message, "failed quota") {
		r.reason = steading.ReasonQuotaExceeded
	}
	return r
}

// current are the newest ReplicaSets of each Deployment: what the others say is past.
func (w workloads) current() []appsv1.ReplicaSet {
	var out []appsv1.ReplicaSet
	for i := range w.deployments {
		var newest *appsv1.ReplicaSet
		for j := range w.replicaSets {
			rs := &w.replicaSets[j]
			if metav1.IsControlledBy(rs, &w.deployments[i]) && (newest == nil || revision(rs) > revision(newest)) {
				newest = rs
			}
		}
		if newest != nil {
			out = append(out, *newest)
		}
	}
	return out
}

func revision(rs *appsv1.ReplicaSet) int64 {
	n, err := strconv.ParseInt(rs.Annotations["deployment.kubernetes.io/revision"], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// upcoming pods are those that the rollout waits for: not those of an older ReplicaSet, nor those that stop.
func (w workloads) upcoming() []corev1.Pod {
	current := w.current()
	var out []corev1.Pod
	for _, pod := range w.pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		old := slices.ContainsFunc(w.replicaSets, func(rs appsv1.ReplicaSet) bool { return metav1.IsControlledBy(&pod, &rs) }) &&
			!slices.ContainsFunc(current, func(rs appsv1.ReplicaSet) bool { return metav1.IsControlledBy(&pod, &rs) })
		if !old {
			out = append(out, pod)
		}
	}
	return out
}

// crashReasons are the kubelet's for a container that waits because it did not run.
var crashReasons = []string{"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError"}

func (w workloads) failedPods(string, time.Time) (rollout, bool) {
	for _, pod := range w.upcoming() {
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if c.State.Waiting == nil {
				continue
			}
			switch why := c.State.Waiting.Reason; {
			case pods.NotPulled(c):
				return rollout{failing: true, reason: steading.ReasonImagePull, message: pods.PullFailure(c)}, true
			case slices.Contains(crashReasons, why):
				return rollout{failing: true, reason: steading.ReasonContainerCrashing, message: pods.Crash(c)}, true
			}
		}
	}
	return rollout{}, false
}

func (w workloads) unscheduledPods(waiting string, now time.Time) (rollout, bool) {
	for _, pod := range w.upcoming() {
		for _, c := range pod.Status.Conditions {
			if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
				continue
			}
			r := rollout{reason: steading.ReasonUnschedulable, message: "no node takes the pod: " + c.Message}
			switch age := now.Sub(c.LastTransitionTime.Time); {
			case age < schedulingQuiet:
				return rollout{reason: steading.ReasonRollingOut, message: waiting, settled: schedulingQuiet - age}, true
			case age < schedulingPatience:
				r.settled = schedulingPatience - age
			default:
				r.failing = true
			}
			return r, true
		}
	}
	return rollout{}, false
}

// pastDeadline is the Deployment's own word that it gave up.
func (w workloads) pastDeadline(string, time.Time) (rollout, bool) {
	for _, d := range w.deployments {
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
				return rollout{failing: true, reason: steading.ReasonDeployFailed, message: fmt.Sprintf("Deployment %s: %s", d.Name, c.Message)}, true
			}
		}
	}
	return rollout{}, false
}
