package kubevirt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// node that all guests run on. There is no such Node.
	node = "kubevirt-0"
	// remount is how long after a volume could not be mounted, or a pod not be made, it is tried again.
	remount = 300 * time.Millisecond

	podScheduled = kubevirtv1.VirtualMachineInstanceConditionType(corev1.PodScheduled)

	reasonClaimNotFound = "FailedPvcNotFound"
	reasonFailedCreate  = "FailedCreate"
	reasonErrImagePull  = "ErrImagePull"
)

// errNotMounted is of a Secret that is not there yet.
var errNotMounted = errors.New("cannot mount the volume")

// instances is virt-controller and virt-handler, of VirtualMachineInstances.
type instances struct{ *KubeVirt }

// Reconcile an instance: one step of its life.
func (i *instances) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	vmi := &kubevirtv1.VirtualMachineInstance{}
	if err := i.reader.Get(ctx, req.NamespacedName, vmi); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := vmi.DeepCopy()
	after, err := i.step(ctx, vmi)
	if err != nil {
		return reconcile.Result{}, err
	}
	if vmi.Status.Phase != before.Status.Phase {
		vmi.Status.PhaseTransitionTimestamps = append(vmi.Status.PhaseTransitionTimestamps, kubevirtv1.VirtualMachineInstancePhaseTransitionTimestamp{
			Phase: vmi.Status.Phase, PhaseTransitionTimestamp: metav1.Now(),
		})
	}
	if !equality.Semantic.DeepEqual(before, vmi) {
		// It has no status that could be written by itself.
		if err := i.client.Update(ctx, vmi); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// step an instance on. What it waits for without being told is looked at again after a while.
func (i *instances) step(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance) (time.Duration, error) {
	goes := vmi.DeletionTimestamp != nil
	switch phase := vmi.Status.Phase; {
	case vmi.IsFinal():
		if !goes {
			return 0, nil
		}
		return i.leave(ctx, vmi)
	case phase == kubevirtv1.Running:
		return 0, i.live(ctx, vmi)
	case goes:
		vmi.Status.Phase = kubevirtv1.Failed
		return 0, nil
	case phase == kubevirtv1.Scheduling:
		return i.schedule(ctx, vmi)
	case phase == kubevirtv1.Scheduled:
		return i.boot(ctx, vmi)
	default:
		return i.launch(ctx, vmi)
	}
}

// launch the pod that the guest is to run in.
func (i *instances) launch(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance) (time.Duration, error) {
	if vmi.Status.Phase == "" {
		vmi.Status.Phase = kubevirtv1.Pending
		say(vmi, kubevirtv1.VirtualMachineInstanceReady, corev1.ConditionFalse, kubevirtv1.PodNotExistsReason, "virt-launcher pod has not yet been scheduled")
		return 0, nil
	}
	if i.faultOf(vmi) == FaultClaimMissing {
		msg := "failed to render launch manifest: didn't find PVC " + claimOf(vmi)
		say(vmi, kubevirtv1.VirtualMachineInstanceSynchronized, corev1.ConditionFalse, reasonClaimNotFound, msg)
		say(vmi, podScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, msg)
		return 0, nil
	}
	if err := i.client.Create(ctx, launcher(vmi)); err != nil && !kerrors.IsAlreadyExists(err) {
		say(vmi, kubevirtv1.VirtualMachineInstanceSynchronized, corev1.ConditionFalse, reasonFailedCreate, fmt.Sprintf("failed to create virtual machine pod: %v", err))
		return remount, nil
	}
	unsay(vmi, kubevirtv1.VirtualMachineInstanceSynchronized)
	say(vmi, kubevirtv1.VirtualMachineInstanceReady, corev1.ConditionFalse, kubevirtv1.GuestNotRunningReason, "Guest VM is not reported as running")
	vmi.Status.Phase = kubevirtv1.Scheduling
	return 0, nil
}

// schedule the pod, and wait until it has its images and volumes.
func (i *instances) schedule(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance) (time.Duration, error) {
	pod := launcher(vmi)
	if err := i.reader.Get(ctx, client.ObjectKeyFromObject(pod), pod); kerrors.IsNotFound(err) || err == nil && pod.DeletionTimestamp != nil {
		vmi.Status.Phase = kubevirtv1.Failed // Somebody else deleted it.
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	switch i.faultOf(vmi) { //nolint:exhaustive // The others strike elsewhere.
	case FaultUnschedulable:
		say(vmi, podScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/3 nodes are available: 3 Insufficient devices.kubevirt.io/kvm.")
		return 0, nil
	case FaultImagePull:
		say(vmi, kubevirtv1.VirtualMachineInstanceSynchronized, corev1.ConditionFalse, reasonErrImagePull, fmt.Sprintf("failed to pull and unpack image %q: not found", imageOf(vmi)))
		return 0, nil
	case FaultCrashes:
		vmi.Status.Phase = kubevirtv1.Failed
		return 0, i.tell(ctx, pod, corev1.PodFailed)
	}
	if _, err := i.cdrom(ctx, vmi); errors.Is(err, errNotMounted) {
		return remount, nil
	} else if err != nil {
		return 0, err
	}
	if err := i.tell(ctx, pod, corev1.PodRunning); err != nil {
		return 0, err
	}
	if vmi.Labels == nil {
		vmi.Labels = map[string]string{}
	}
	vmi.Labels[kubevirtv1.NodeNameLabel], vmi.Status.NodeName = node, node
	vmi.Status.Phase = kubevirtv1.Scheduled
	return 0, nil
}

// boot the guest. What is on the CDROM then stays on it.
func (i *instances) boot(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance) (time.Duration, error) {
	disc, err := i.cdrom(ctx, vmi)
	if errors.Is(err, errNotMounted) {
		return remount, nil
	} else if err != nil {
		return 0, err
	}
	i.start(vmi, disc) //nolint:contextcheck // The guest outlives this step.
	vmi.Status.Phase = kubevirtv1.Running
	say(vmi, kubevirtv1.VirtualMachineInstanceReady, corev1.ConditionTrue, "", "")
	say(vmi, kubevirtv1.VirtualMachineInstanceAgentConnected, corev1.ConditionTrue, "", "")
	return 0, nil
}

// live as long as the guest does. Then its pod has ended, too, and counts against no quota.
func (i *instances) live(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance) error {
	g := i.guest(vmi)
	if g == nil { // It ran in a process that is gone.
		vmi.Status.Phase = kubevirtv1.Failed
		return nil
	}
	if vmi.DeletionTimestamp != nil {
		g.leave(time.Duration(ptr.Deref(vmi.Spec.TerminationGracePeriodSeconds, defaultGrace)) * time.Second)
	}
	if !g.over() {
		return nil
	}
	vmi.Status.Phase = kubevirtv1.Succeeded
	// One that was not asked to power off, because it had no time to, is destroyed well; one that did not in time is not.
	if g.ending == crashed || g.ending == destroyed && ptr.Deref(vmi.Spec.TerminationGracePeriodSeconds, defaultGrace) > 0 {
		vmi.Status.Phase = kubevirtv1.Failed
	}
	say(vmi, kubevirtv1.VirtualMachineInstanceReady, corev1.ConditionFalse, kubevirtv1.PodTerminatingReason, "virt-launcher pod is terminating")
	unsay(vmi, kubevirtv1.VirtualMachineInstanceAgentConnected)
	pod := launcher(vmi)
	if err := i.reader.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(i.tell(ctx, pod, corev1.PodSucceeded))
}

// leave when the instance is deleted and over: its pod goes, then its finalizer.
func (i *instances) leave(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance) (time.Duration, error) {
	if i.holds(vmi) {
		return remount, nil
	}
	pod := launcher(vmi)
	if err := client.IgnoreNotFound(i.client.Delete(ctx, pod, client.GracePeriodSeconds(0))); err != nil {
		return 0, err
	}
	i.forget(vmi)
	controllerutil.RemoveFinalizer(vmi, kubevirtv1.VirtualMachineInstanceFinalizer)
	owner := metav1.GetControllerOf(vmi)
	if owner == nil {
		controllerutil.RemoveFinalizer(vmi, kubevirtv1.VirtualMachineControllerFinalizer)
	}
	return 0, nil
}

// tell what became of a pod.
func (i *instances) tell(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase) error {
	if pod.Status.Phase == phase {
		return nil
	}
	ready := corev1.ConditionFalse
	if phase == corev1.PodRunning {
		ready = corev1.ConditionTrue
	}
	pod.Status.Phase = phase
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: ready}, {Type: corev1.ContainersReady, Status: ready},
	}
	return i.client.Status().Update(ctx, pod)
}

// claimOf the first volume that has one.
func claimOf(vmi *kubevirtv1.VirtualMachineInstance) string {
	for _, v := range vmi.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			return v.PersistentVolumeClaim.ClaimName
		case v.DataVolume != nil:
			return v.DataVolume.Name
		}
	}
	return ""
}

// imageOf the first disk that has one.
func imageOf(vmi *kubevirtv1.VirtualMachineInstance) string {
	for _, v := range vmi.Spec.Volumes {
		if v.ContainerDisk != nil {
			return v.ContainerDisk.Image
		}
	}
	return ""
}

// has reports whether an instance has a condition with a status, and a reason if one is given.
func has(vmi *kubevirtv1.VirtualMachineInstance, kind kubevirtv1.VirtualMachineInstanceConditionType, status corev1.ConditionStatus, reason string) bool {
	if vmi == nil {
		return false
	}
	for _, c := range vmi.Status.Conditions {
		if c.Type == kind {
			return c.Status == status && (reason == "" || c.Reason == reason)
		}
	}
	return false
}

// say a condition of an instance.
func say(vmi *kubevirtv1.VirtualMachineInstance, kind kubevirtv1.VirtualMachineInstanceConditionType, status corev1.ConditionStatus, reason, message string) {
	for n, c := range vmi.Status.Conditions {
		if c.Type == kind {
			if c.Status != status || c.Reason != reason || c.Message != message {
				vmi.Status.Conditions[n] = kubevirtv1.VirtualMachineInstanceCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
			}
			return
		}
	}
	vmi.Status.Conditions = append(vmi.Status.Conditions, kubevirtv1.VirtualMachineInstanceCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
	})
}

// unsay a condition.
func unsay(vmi *kubevirtv1.VirtualMachineInstance, kind kubevirtv1.VirtualMachineInstanceConditionType) {
	var rest []kubevirtv1.VirtualMachineInstanceCondition
	for _, c := range vmi.Status.Conditions {
		if c.Type != kind {
			rest = append(rest, c)
		}
	}
	vmi.Status.Conditions = rest
}

// cdrom is what is on the disc that the guest has: the files of the Secret that the first CDROM of one is of. A machine
// without such has none.
func (i *instances) cdrom(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance) (map[string]string, error) {
	drives := map[string]bool{}
	for _, d := range vmi.Spec.Domain.Devices.Disks {
		drives[d.Name] = d.CDRom != nil
	}
	for _, v := range vmi.Spec.Volumes {
		if v.Secret == nil || !drives[v.Name] {
			continue
		}
		s := &corev1.Secret{}
		if err := i.reader.Get(ctx, client.ObjectKey{Namespace: vmi.Namespace, Name: v.Secret.SecretName}, s); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotMounted, err)
		}
		disc := map[string]string{}
		for name, raw := range s.Data {
			disc[name] = strings.TrimSpace(string(raw))
		}
		return disc, nil
	}
	return nil, nil //nolint:nilnil // Nil is what there is.
}
