package child

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/steading-dev/steading/providers/internal/pods"
)

// A Phase is how far the runner in a child has got.
type Phase string

// Phases of a runner in its child.
const (
	// Missing has no child.
	Missing Phase = "Missing"
	// Starting has a child whose runner does not run yet.
	Starting Phase = "Starting"
	// Running has a runner that runs.
	Running Phase = "Running"
	// Ended has a runner that ran, or will never run. Other containers of its pod may run on.
	Ended Phase = "Ended"
)

// A State is what is seen of a child. The zero State is of one that is missing.
type State struct {
	// Phase of the runner in it.
	Phase Phase
	// UID of the child.
	UID types.UID
	// ExitedZero is whether the runner ended as it does when it has reported a job.
	ExitedZero bool
	// Quiet is whether nothing of the child runs, or will without being asked to.
	Quiet bool
	// Settling is whether its pods are over and the Job controller has yet to say so of the Job, which then is quiet by itself.
	Settling bool
	// StartTime is when the runner started. Zero: it has not, or nobody knows any more.
	StartTime time.Time
	// Message says what a runner that starts waits for, or how one ended, as it is said each time. It may be empty.
	Message string
}

// Gone is the state of a child that is not there.
func Gone() State { return State{Phase: Missing, Quiet: true} }

// OfJob is the state of a Job and its pods, by its container that the runner is in.
func OfJob(j *batchv1.Job, all []corev1.Pod, container string) State {
	s := State{Phase: Starting, UID: j.UID, Quiet: true}
	for i := range all {
		s.see(&all[i], container)
	}
	switch complete, failed := condition(j, batchv1.JobComplete, batchv1.JobSuccessCriteriaMet), condition(j, batchv1.JobFailed, batchv1.JobFailureTarget); {
	case complete != nil:
		s.Phase, s.ExitedZero = Ended, true
	case failed != nil:
		if s.Phase != Ended {
			s.Message = sentence("its Job failed", failed.Message)
		}
		s.Phase = Ended
	case j.DeletionTimestamp != nil:
		s.Phase, s.Message = Ended, "its Job was deleted"
	case j.Spec.Suspend != nil && *j.Spec.Suspend:
		s.Phase, s.Message = Ended, "its Job is suspended"
	default:
		// One without pods is about to make one.
		s.Settling, s.Quiet = s.Quiet && s.Phase == Ended, false
	}
	return s
}

// condition of a Job that is true, of one of these types, nil if none is.
func condition(j *batchv1.Job, types ...batchv1.JobConditionType) *batchv1.JobCondition {
	for i, c := range j.Status.Conditions {
		if slices.Contains(types, c.Type) && c.Status == corev1.ConditionTrue {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}

// see one of the Job's pods. There is one, but for what somebody made of it.
func (s *State) see(p *corev1.Pod, container string) {
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if !over {
		s.Quiet = false
	}
	if p.DeletionTimestamp != nil {
		return
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.Name != container {
			continue
		}
		switch {
		case c.State.Terminated != nil:
			s.Phase, s.ExitedZero, s.StartTime = Ended, c.State.Terminated.ExitCode == 0, c.State.Terminated.StartedAt.Time
			s.Message = ending(c.State.Terminated)
			return
		case c.State.Running != nil:
			s.Phase, s.StartTime, s.Message = Running, c.State.Running.StartedAt.Time, ""
			return
		}
	}
	if over {
		s.Phase, s.Message = Ended, sentence("its pod failed", sentence(p.Status.Reason, p.Status.Message))
		return
	}
	s.Message = waitsFor(p)
}

// ending of a runner's container, in words.
func ending(t *corev1.ContainerStateTerminated) string {
	msg := fmt.Sprintf("it ended with exit code %d", t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" && t.Reason != "Completed" {
		msg += " (" + t.Reason + ")"
	}
	return sentence(msg, t.Message)
}

// waitsFor says what a pod waits for that is not started, empty when it is on its way.
func waitsFor(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return sentence("no node takes its pod", c.Message)
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch w, t := c.State.Waiting, c.State.Terminated; {
		case pods.NotPulled(c):
			return pods.PullFailure(c)
		case w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" && w.Reason != "":
			return pods.Crash(c)
		case t != nil && t.ExitCode != 0:
			return sentence(fmt.Sprintf("container %s ended with exit code %d", c.Name, t.ExitCode), t.Message)
		}
	}
	return ""
}

// OfMachine is the state of a VirtualMachine and its instance, nil if it has none. Started is when one was seen to run first,
// nil if none was.
func OfMachine(vm *kubevirtv1.VirtualMachine, vmi *kubevirtv1.VirtualMachineInstance, started *metav1.Time) State {
	s := State{Phase: Starting, UID: vm.UID}
	halted := vm.Spec.RunStrategy != nil && *vm.Spec.RunStrategy == kubevirtv1.RunStrategyHalted
	switch {
	case vmi == nil && (halted || started != nil || vm.DeletionTimestamp != nil):
		s.Phase, s.Quiet, s.Message = Ended, true, "its virtual machine was stopped"
		return s
	case vmi == nil:
		s.Message = machineWaitsFor(vm)
		return s
	}
	if started != nil && vmi.CreationTimestamp.After(started.Time) {
		// KubeVirt makes another instance when one is deleted, and the credential of the runner that ran is spent.
		s.Phase, s.Message = Ended, "the instance of its virtual machine was deleted, and started again"
		return s
	}
	s.StartTime = reached(vmi, kubevirtv1.Running)
	switch vmi.Status.Phase {
	case kubevirtv1.Succeeded:
		s.Phase, s.ExitedZero, s.Quiet, s.Message = Ended, true, true, "its guest shut down"
		if vmi.DeletionTimestamp != nil {
			// A guest that is destroyed without a grace period is said to have succeeded, too.
			s.ExitedZero, s.Message = false, "its virtual machine was stopped"
		}
	case kubevirtv1.Failed:
		s.Phase, s.Quiet, s.Message = Ended, true, sentence(failure(s.StartTime), vmi.Status.Reason)
	case kubevirtv1.Running:
		s.Phase = Running
	default:
		s.Message = machineWaitsFor(vm)
	}
	return s
}

// failure of an instance, which may have run since some time.
func failure(ran time.Time) string {
	if ran.IsZero() {
		return "its virtual machine failed before its guest ran"
	}
	return "its virtual machine failed"
}

// wanting are conditions of an instance, copied to its machine, that say while they are false what is in the way, the most
// telling first.
var wanting = []struct {
	kind kubevirtv1.VirtualMachineConditionType
	what string
}{
	{kubevirtv1.VirtualMachineConditionType(kubevirtv1.VirtualMachineInstanceSynchronized), "its virtual machine cannot be started"},
	{kubevirtv1.VirtualMachineConditionType(corev1.PodScheduled), "no node takes its virtual machine"},
}

// machineWaitsFor says what a machine waits for, in KubeVirt's words.
func machineWaitsFor(vm *kubevirtv1.VirtualMachine) string {
	by := map[kubevirtv1.VirtualMachineConditionType]kubevirtv1.VirtualMachineCondition{}
	for _, c := range vm.Status.Conditions {
		by[c.Type] = c
	}
	if c := by[kubevirtv1.VirtualMachineFailure]; c.Status == corev1.ConditionTrue {
		return sentence("its virtual machine cannot be started", sentence(c.Reason, c.Message))
	}
	for _, w := range wanting {
		if c := by[w.kind]; c.Status == corev1.ConditionFalse {
			return sentence(w.what, sentence(c.Reason, c.Message))
		}
	}
	switch st := vm.Status.PrintableStatus; st {
	case "", kubevirtv1.VirtualMachineStatusStopped, kubevirtv1.VirtualMachineStatusStarting, kubevirtv1.VirtualMachineStatusRunning:
	default:
		return "its virtual machine is " + string(st)
	}
	if c := by[kubevirtv1.VirtualMachineReady]; c.Status == corev1.ConditionFalse && c.Reason != noInstance {
		return sentence("its virtual machine is not ready", c.Message)
	}
	return ""
}

// noInstance is the reason of a machine without an instance. It says nothing of why.
const noInstance = "VMINotExists"

// reached is when an instance came to a phase, zero if it is not told.
func reached(vmi *kubevirtv1.VirtualMachineInstance, p kubevirtv1.VirtualMachineInstancePhase) time.Time {
	for _, t := range vmi.Status.PhaseTransitionTimestamps {
		if t.Phase == p {
			return t.PhaseTransitionTimestamp.Time
		}
	}
	return time.Time{}
}

// sentence of what happened and why, as far as it is known.
func sentence(what, why string) string {
	switch {
	case why == "":
		return what
	case what == "":
		return why
	default:
		return what + ": " + why
	}
}
