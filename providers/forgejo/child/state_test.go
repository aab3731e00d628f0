package child

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

var started = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func jobOf(change ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "job-1"}}
	for _, c := range change {
		c(j)
	}
	return j
}

func with(t batchv1.JobConditionType, message string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Message: message})
	}
}

func podOf(phase corev1.PodPhase, statuses ...corev1.ContainerStatus) corev1.Pod {
	return corev1.Pod{Status: corev1.PodStatus{Phase: phase, ContainerStatuses: statuses}}
}

func ran(code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "job", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", StartedAt: metav1.NewTime(started)}}}
}

func runs(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(started)}}}
}

func waits(name, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, Image: "r:2", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func TestStateOfAJob(t *testing.T) {
	cases := map[string]struct {
		reason string
		job    *batchv1.Job
		pods   []corev1.Pod
		want   State
	}{
		"Fresh": {
			reason: "the Job has made no pod yet, and will",
			job:    jobOf(),
			want:   State{Phase: Starting},
		},
		"Pulling": {
			reason: "a pod that starts says nothing",
			job:    jobOf(), pods: []corev1.Pod{podOf(corev1.PodPending, waits("job", "ContainerCreating", ""))},
			want: State{Phase: Starting},
		},
		"NoImage": {
			reason: "the kubelet's word for it (actions-runner-controller#4654)",
			job:    jobOf(), pods: []corev1.Pod{podOf(corev1.PodPending, waits("job", "ErrImagePull", "not found"))},
			want: State{Phase: Starting, Message: "container job: cannot pull image r:2: not found"},
		},
		"NoNode": {
			reason: "the scheduler's word for it",
			job:    jobOf(), pods: []corev1.Pod{{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available"},
			}}}},
			want: State{Phase: Starting, Message: "no node takes its pod: 0/1 nodes are available"},
		},
		"NoProgram": {
			reason: "the init container found no program to copy",
			job:    jobOf(), pods: []corev1.Pod{{Status: corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "steading-runner", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}},
			}}}},
			want: State{Phase: Starting, Message: "container steading-runner ended with exit code 1"},
		},
		"Runs": {
			reason: "the job's container counts",
			job:    jobOf(), pods: []corev1.Pod{podOf(corev1.PodRunning, runs("cache"), runs("job"))},
			want: State{Phase: Running, StartTime: started},
		},
		"EndedBesideASidecar": {
			reason: "the runner ended, though its pod runs on",
			job:    jobOf(), pods: []corev1.Pod{podOf(corev1.PodRunning, runs("cache"), ran(0))},
			want: State{Phase: Ended, ExitedZero: true, StartTime: started, Message: "it ended with exit code 0"},
		},
		"PodSucceeded": {
			reason: "the Job's controller has not seen it yet, and makes no other pod",
			job:    jobOf(), pods: []corev1.Pod{podOf(corev1.PodSucceeded, ran(0))},
			want: State{Phase: Ended, ExitedZero: true, Settling: true, StartTime: started, Message: "it ended with exit code 0"},
		},
		"Complete": {
			reason: "the pod may be collected by then",
			job:    jobOf(with(batchv1.JobComplete, "")),
			want:   State{Phase: Ended, ExitedZero: true, Quiet: true},
		},
		"Failed": {
			reason: "the pod tells more than the Job",
			job:    jobOf(with(batchv1.JobFailed, "Job has reached the specified backoff limit")), pods: []corev1.Pod{podOf(corev1.PodFailed, ran(137))},
			want: State{Phase: Ended, Quiet: true, StartTime: started, Message: "it ended with exit code 137"},
		},
		"Evicted": {
			reason: "the pod says why it has no containers",
			job:    jobOf(with(batchv1.JobFailureTarget, "")), pods: []corev1.Pod{{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "the node was low on memory"}}},
			want: State{Phase: Ended, Quiet: true, Message: "its pod failed: Evicted: the node was low on memory"},
		},
		"PodDeleted": {
			reason: "a pod that is being deleted still runs, and holds its slot (actions-runner-controller#4148)",
			job:    jobOf(with(batchv1.JobFailureTarget, "a pod was deleted")), pods: []corev1.Pod{{
				ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.NewTime(started))},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{runs("job")}},
			}},
			want: State{Phase: Ended, Message: "its Job failed: a pod was deleted"},
		},
		"Suspended": {
			reason: "it was stopped",
			job:    jobOf(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }),
			want:   State{Phase: Ended, Quiet: true, Message: "its Job is suspended"},
		},
		"BeingDeleted": {
			reason: "somebody takes it away",
			job:    jobOf(func(j *batchv1.Job) { j.DeletionTimestamp = ptr.To(metav1.NewTime(started)) }), pods: []corev1.Pod{podOf(corev1.PodRunning, runs("job"))},
			want: State{Phase: Ended, StartTime: started, Message: "its Job was deleted"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.UID = "job-1"
			if diff := cmp.Diff(tc.want, OfJob(tc.job, tc.pods, "job")); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// says has a machine have a condition that is false.
func says(kind kubevirtv1.VirtualMachineConditionType, reason, message string) func(*kubevirtv1.VirtualMachine) {
	return func(vm *kubevirtv1.VirtualMachine) {
		vm.Status.Conditions = append(vm.Status.Conditions, kubevirtv1.VirtualMachineCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message})
	}
}

func printed(s kubevirtv1.VirtualMachinePrintableStatus) func(*kubevirtv1.VirtualMachine) {
	return func(vm *kubevirtv1.VirtualMachine) { vm.Status.PrintableStatus = s }
}

func deleted(vmi *kubevirtv1.VirtualMachineInstance) *kubevirtv1.VirtualMachineInstance {
	vmi.DeletionTimestamp = ptr.To(metav1.NewTime(started))
	return vmi
}

func createdAt(vmi *kubevirtv1.VirtualMachineInstance, at time.Time) *kubevirtv1.VirtualMachineInstance {
	vmi.CreationTimestamp = metav1.NewTime(at)
	return vmi
}

func TestStateOfAMachine(t *testing.T) {
	vmOf := func(change ...func(*kubevirtv1.VirtualMachine)) *kubevirtv1.VirtualMachine {
		vm := &kubevirtv1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{UID: "vm-1"}}
		for _, c := range change {
			c(vm)
		}
		return vm
	}
	vmiOf := func(phases ...kubevirtv1.VirtualMachineInstancePhase) *kubevirtv1.VirtualMachineInstance {
		vmi := &kubevirtv1.VirtualMachineInstance{}
		for i, p := range phases {
			vmi.Status.Phase = p
			vmi.Status.PhaseTransitionTimestamps = append(vmi.Status.PhaseTransitionTimestamps, kubevirtv1.VirtualMachineInstancePhaseTransitionTimestamp{
				Phase: p, PhaseTransitionTimestamp: metav1.NewTime(started.Add(time.Duration(i) * time.Second)),
			})
		}
		return vmi
	}
	cases := map[string]struct {
		reason  string
		vm      *kubevirtv1.VirtualMachine
		vmi     *kubevirtv1.VirtualMachineInstance
		started *metav1.Time
		want    State
	}{
		"Fresh": {reason: "KubeVirt says Stopped of one that was never started", vm: vmOf(func(vm *kubevirtv1.VirtualMachine) {
			vm.Status.PrintableStatus = kubevirtv1.VirtualMachineStatusStopped
		}), want: State{Phase: Starting}},
		"Disk": {reason: "it waits for its disk", vm: vmOf(func(vm *kubevirtv1.VirtualMachine) {
			vm.Status.PrintableStatus = kubevirtv1.VirtualMachineStatusProvisioning
		}), want: State{Phase: Starting, Message: "its virtual machine is Provisioning"}},
		"Scheduled": {reason: "the guest does not run yet", vm: vmOf(), vmi: vmiOf(kubevirtv1.Scheduling), want: State{Phase: Starting}},
		"NotReady": {
			reason: "KubeVirt's own word",
			vm: vmOf(func(vm *kubevirtv1.VirtualMachine) {
				vm.Status.Conditions = []kubevirtv1.VirtualMachineCondition{{Type: kubevirtv1.VirtualMachineReady, Status: corev1.ConditionFalse, Message: "Guest VM is not reported as running"}}
			}),
			vmi: vmiOf(kubevirtv1.Scheduling), want: State{Phase: Starting, Message: "its virtual machine is not ready: Guest VM is not reported as running"},
		},
		"Runs":      {reason: "since it came to run", vm: vmOf(), vmi: vmiOf(kubevirtv1.Scheduling, kubevirtv1.Running), want: State{Phase: Running, StartTime: started.Add(time.Second)}},
		"Succeeded": {reason: "the guest shut down", vm: vmOf(), vmi: vmiOf(kubevirtv1.Running, kubevirtv1.Succeeded), want: State{Phase: Ended, ExitedZero: true, Quiet: true, StartTime: started, Message: "its guest shut down"}},
		"Failed":    {reason: "the machine crashed", vm: vmOf(), vmi: vmiOf(kubevirtv1.Running, kubevirtv1.Failed), want: State{Phase: Ended, Quiet: true, StartTime: started, Message: "its virtual machine failed"}},
		"FailedEarly": {
			reason: "its launcher ended, and the guest never ran", vm: vmOf(), vmi: vmiOf(kubevirtv1.Scheduling, kubevirtv1.Failed),
			want: State{Phase: Ended, Quiet: true, Message: "its virtual machine failed before its guest ran"},
		},
		"Destroyed": {
			reason: "KubeVirt says of a guest that it destroyed without a grace period that it succeeded, which says nothing of a job", vm: vmOf(),
			vmi: deleted(vmiOf(kubevirtv1.Running, kubevirtv1.Succeeded)), want: State{Phase: Ended, Quiet: true, StartTime: started, Message: "its virtual machine was stopped"},
		},
		"StartedAgain": {
			reason: "somebody deleted the instance, and KubeVirt made another, by the run strategy Once, too", vm: vmOf(),
			vmi: createdAt(vmiOf(kubevirtv1.Running), started.Add(time.Second)), started: &metav1.Time{Time: started},
			want: State{Phase: Ended, Message: "the instance of its virtual machine was deleted, and started again"},
		},
		"RunsOn": {
			reason: "the instance is the one that was seen to run", vm: vmOf(),
			vmi: createdAt(vmiOf(kubevirtv1.Running), started), started: &metav1.Time{Time: started}, want: State{Phase: Running, StartTime: started},
		},
		"NoNode": {
			reason: "the scheduler's word, which KubeVirt passes on, and not that the guest does not run",
			vm: vmOf(says(kubevirtv1.VirtualMachineReady, "GuestNotRunning", "Guest VM is not reported as running"), says("PodScheduled", "Unschedulable", "0/3 nodes are available"),
				printed(kubevirtv1.VirtualMachineStatusUnschedulable)),
			vmi: vmiOf(kubevirtv1.Scheduling), want: State{Phase: Starting, Message: "no node takes its virtual machine: Unschedulable: 0/3 nodes are available"},
		},
		"NoImage": {
			reason: "the kubelet's word",
			vm: vmOf(says(kubevirtv1.VirtualMachineReady, "GuestNotRunning", "Guest VM is not reported as running"), says("Synchronized", "ErrImagePull", "not found"),
				printed(kubevirtv1.VirtualMachineStatusErrImagePull)),
			vmi: vmiOf(kubevirtv1.Scheduling), want: State{Phase: Starting, Message: "its virtual machine cannot be started: ErrImagePull: not found"},
		},
		"NoInstance": {
			reason: "the machine has no instance, and says why",
			vm: vmOf(says(kubevirtv1.VirtualMachineReady, "VMINotExists", "VMI does not exist"), func(vm *kubevirtv1.VirtualMachine) {
				vm.Status.Conditions = append(vm.Status.Conditions, kubevirtv1.VirtualMachineCondition{
					Type: kubevirtv1.VirtualMachineFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "admission webhook denied the request",
				})
			}),
			want: State{Phase: Starting, Message: "its virtual machine cannot be started: FailedCreate: admission webhook denied the request"},
		},
		"NoDisk": {
			reason: "that there is no instance says nothing, and the printed status does",
			vm:     vmOf(says(kubevirtv1.VirtualMachineReady, "VMINotExists", "VMI does not exist"), printed(kubevirtv1.VirtualMachineStatusDataVolumeError)),
			want:   State{Phase: Starting, Message: "its virtual machine is DataVolumeError"},
		},
		"Vanished": {reason: "an instance that ran and is gone was deleted", vm: vmOf(), started: &metav1.Time{Time: started}, want: State{Phase: Ended, Quiet: true, Message: "its virtual machine was stopped"}},
		"Halted":   {reason: "it was stopped", vm: vmOf(func(vm *kubevirtv1.VirtualMachine) { vm.Spec.RunStrategy = ptr.To(kubevirtv1.RunStrategyHalted) }), want: State{Phase: Ended, Quiet: true, Message: "its virtual machine was stopped"}},
		"Halting":  {reason: "it runs until its instance is gone", vm: vmOf(func(vm *kubevirtv1.VirtualMachine) { vm.Spec.RunStrategy = ptr.To(kubevirtv1.RunStrategyHalted) }), vmi: vmiOf(kubevirtv1.Running), want: State{Phase: Running, StartTime: started}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.UID = "vm-1"
			if diff := cmp.Diff(tc.want, OfMachine(tc.vm, tc.vmi, tc.started)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
