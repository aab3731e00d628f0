package kubevirt

import (
	"context"
	"fmt"
	"slices"
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

// startBackoff is how long after a machine failed to start it is started again, at first. KubeVirt doubles it.
const startBackoff = 10 * time.Second

// machines is virt-controller, of VirtualMachines.
type machines struct{ *KubeVirt }

// Reconcile a machine and its instance.
func (m *machines) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	vm := &kubevirtv1.VirtualMachine{}
	if err := m.reader.Get(ctx, req.NamespacedName, vm); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	fault := m.strike(vm)
	vmi := &kubevirtv1.VirtualMachineInstance{}
	if err := m.reader.Get(ctx, req.NamespacedName, vmi); kerrors.IsNotFound(err) {
		vmi = nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if vmi != nil && !metav1.IsControlledBy(vmi, vm) {
		return reconcile.Result{}, fmt.Errorf("the instance %s is somebody else's", req)
	}
	if vm.DeletionTimestamp != nil && vmi == nil {
		controllerutil.RemoveFinalizer(vm, kubevirtv1.VirtualMachineControllerFinalizer)
		return reconcile.Result{}, client.IgnoreNotFound(m.client.Update(ctx, vm))
	}
	if vm.DeletionTimestamp == nil && controllerutil.AddFinalizer(vm, kubevirtv1.VirtualMachineControllerFinalizer) {
		return reconcile.Result{}, m.client.Update(ctx, vm)
	}
	after, failed := m.run(ctx, vm, vmi, fault)
	if err := m.report(ctx, vm, vmi, fault, failed); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: after}, failed
}

// run the machine as its run strategy says. It is looked at again after a while, if that is not zero.
func (m *machines) run(ctx context.Context, vm *kubevirtv1.VirtualMachine, vmi *kubevirtv1.VirtualMachineInstance, fault FaultKind) (time.Duration, error) {
	strategy, err := vm.RunStrategy()
	final := vmi != nil && vmi.IsFinal()
	switch {
	case err != nil:
		return 0, err
	case vm.DeletionTimestamp != nil, strategy == kubevirtv1.RunStrategyHalted:
		return 0, m.stop(ctx, vmi)
	case strategy == kubevirtv1.RunStrategyManual:
		return 0, nil
	case final && (strategy == kubevirtv1.RunStrategyAlways || strategy == kubevirtv1.RunStrategyRerunOnFailure):
		if vmi.Status.Phase == kubevirtv1.Failed && vmi.DeletionTimestamp == nil {
			vm.Status.StateChangeRequests = []kubevirtv1.VirtualMachineStateChangeRequest{{Action: kubevirtv1.StartRequest}}
		}
		return 0, m.stop(ctx, vmi)
	case vmi != nil:
		vm.Status.StateChangeRequests = nil
		return 0, nil
	case fault == FaultDataVolume:
		return 0, nil
	case strategy == kubevirtv1.RunStrategyRerunOnFailure && vm.Status.RunStrategy == strategy && len(vm.Status.StateChangeRequests) == 0:
		// It ended well: its instance is taken away, and no other is made.
		return 0, nil
	}
	if f := vm.Status.StartFailure; f != nil && f.RetryAfterTimestamp != nil && strategy != kubevirtv1.RunStrategyOnce {
		if left := time.Until(f.RetryAfterTimestamp.Time); left > 0 {
			return left, nil
		}
	}
	// By the strategy Once, too, one whose instance somebody deleted is started again.
	return 0, m.start(ctx, vm)
}

// start the machine by making its instance.
func (m *machines) start(ctx context.Context, vm *kubevirtv1.VirtualMachine) error {
	vmi := &kubevirtv1.VirtualMachineInstance{ObjectMeta: *vm.Spec.Template.ObjectMeta.DeepCopy(), Spec: *vm.Spec.Template.Spec.DeepCopy()}
	vmi.Namespace, vmi.Name, vmi.GenerateName = vm.Namespace, vm.Name, ""
	vmi.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(vm, kubevirtv1.VirtualMachineGroupVersionKind)}
	vmi.Finalizers = []string{kubevirtv1.VirtualMachineControllerFinalizer, kubevirtv1.VirtualMachineInstanceFinalizer}
	return client.IgnoreAlreadyExists(m.client.Create(ctx, vmi))
}

func (m *machines) stop(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance) error {
	if vmi == nil || vmi.DeletionTimestamp != nil {
		return nil
	}
	return client.IgnoreNotFound(m.client.Delete(ctx, vmi, client.Preconditions{UID: &vmi.UID}))
}

// report on the machine, and let go of an instance that is over.
func (m *machines) report(ctx context.Context, vm *kubevirtv1.VirtualMachine, vmi *kubevirtv1.VirtualMachineInstance, fault FaultKind, failed error) error {
	before := vm.Status.DeepCopy()
	s := &vm.Status
	s.Created, s.Ready = vmi != nil, vmi != nil && has(vmi, kubevirtv1.VirtualMachineInstanceReady, corev1.ConditionTrue, "")
	if strategy, err := vm.RunStrategy(); err == nil && (s.Created || s.RunStrategy != "") {
		s.RunStrategy = strategy
	}
	s.StartFailure = startFailure(s.StartFailure, vmi)
	s.Conditions = conditions(vm, vmi, failed)
	s.PrintableStatus = printable(vm, vmi, fault)
	if !equality.Semantic.DeepEqual(before, s) {
		if err := m.client.Status().Update(ctx, vm); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if vmi != nil && vmi.IsFinal() && controllerutil.RemoveFinalizer(vmi, kubevirtv1.VirtualMachineControllerFinalizer) {
		return client.IgnoreNotFound(m.client.Update(ctx, vmi))
	}
	return nil
}

// startFailure counts the instances in a row that ended before their guest ran.
func startFailure(f *kubevirtv1.VirtualMachineStartFailure, vmi *kubevirtv1.VirtualMachineInstance) *kubevirtv1.VirtualMachineStartFailure {
	switch {
	case vmi == nil:
		return f
	case slices.ContainsFunc(vmi.Status.PhaseTransitionTimestamps, func(t kubevirtv1.VirtualMachineInstancePhaseTransitionTimestamp) bool {
		return t.Phase == kubevirtv1.Running
	}):
		return nil
	case !vmi.IsFinal(), f != nil && f.LastFailedVMIUID == vmi.UID:
		return f
	}
	n := 1
	if f != nil {
		n += f.ConsecutiveFailCount
	}
	return &kubevirtv1.VirtualMachineStartFailure{
		ConsecutiveFailCount: n, LastFailedVMIUID: vmi.UID, RetryAfterTimestamp: ptr.To(metav1.NewTime(time.Now().Add(startBackoff << (n - 1)))),
	}
}

// conditions of a machine are its instance's, and two of its own.
func conditions(vm *kubevirtv1.VirtualMachine, vmi *kubevirtv1.VirtualMachineInstance, failed error) []kubevirtv1.VirtualMachineCondition {
	ready := kubevirtv1.VirtualMachineCondition{Type: kubevirtv1.VirtualMachineReady, Status: corev1.ConditionFalse, Reason: "VMINotExists", Message: "VMI does not exist"}
	all := []kubevirtv1.VirtualMachineCondition{ready}
	if vmi != nil {
		all[0].Reason, all[0].Message = "VMIConditionMissing", "VMI is missing the Ready condition"
		for _, c := range vmi.Status.Conditions {
			same := kubevirtv1.VirtualMachineCondition{
				Type: kubevirtv1.VirtualMachineConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
			}
			if same.Type == kubevirtv1.VirtualMachineReady {
				all[0] = same
			} else {
				all = append(all, same)
			}
		}
	}
	if failed != nil {
		all = append(all, kubevirtv1.VirtualMachineCondition{Type: kubevirtv1.VirtualMachineFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: failed.Error()})
	}
	for i := range all {
		all[i].LastTransitionTime = transition(vm.Status.Conditions, all[i])
	}
	return all
}

// transition is when a condition came to be what it is.
func transition(before []kubevirtv1.VirtualMachineCondition, c kubevirtv1.VirtualMachineCondition) metav1.Time {
	for _, b := range before {
		if b.Type == c.Type && b.Status == c.Status && b.Reason == c.Reason {
			return b.LastTransitionTime
		}
	}
	return metav1.Now().Rfc3339Copy()
}

// printable status of a machine: the first that applies, in KubeVirt's order.
func printable(vm *kubevirtv1.VirtualMachine, vmi *kubevirtv1.VirtualMachineInstance, fault FaultKind) kubevirtv1.VirtualMachinePrintableStatus {
	lasts := vmi != nil && !vmi.IsFinal()
	synchronized := kubevirtv1.VirtualMachineInstanceSynchronized
	switch {
	case vm.DeletionTimestamp != nil:
		return kubevirtv1.VirtualMachineStatusTerminating
	case lasts && vmi.DeletionTimestamp != nil:
		return kubevirtv1.VirtualMachineStatusStopping
	case lasts && vmi.IsRunning():
		return kubevirtv1.VirtualMachineStatusRunning
	case has(vmi, synchronized, corev1.ConditionFalse, reasonClaimNotFound):
		return kubevirtv1.VirtualMachineStatusPvcNotFound
	case fault == FaultDataVolume:
		return kubevirtv1.VirtualMachineStatusDataVolumeError
	case has(vmi, podScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable):
		return kubevirtv1.VirtualMachineStatusUnschedulable
	case has(vmi, synchronized, corev1.ConditionFalse, reasonErrImagePull):
		return kubevirtv1.VirtualMachineStatusErrImagePull
	case lasts:
		return kubevirtv1.VirtualMachineStatusStarting
	case vm.Status.StartFailure != nil && vm.Status.RunStrategy != kubevirtv1.RunStrategyHalted && vm.Status.RunStrategy != kubevirtv1.RunStrategyManual:
		return kubevirtv1.VirtualMachineStatusCrashLoopBackOff
	default:
		return kubevirtv1.VirtualMachineStatusStopped
	}
}
