package kubevirt

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// A FaultKind is what goes wrong with a machine.
type FaultKind string

const (
	// FaultUnschedulable keeps the instance in Scheduling: no node takes its pod.
	FaultUnschedulable FaultKind = "unschedulable"
	// FaultImagePull keeps the instance in Scheduling: the image of a containerDisk is not there.
	FaultImagePull FaultKind = "image-pull"
	// FaultClaimMissing keeps the instance pending: a PersistentVolumeClaim that it has a volume of is not there.
	FaultClaimMissing FaultKind = "claim-missing"
	// FaultDataVolume has no instance made: the import of a DataVolume failed.
	FaultDataVolume FaultKind = "data-volume"
	// FaultCrashes has the launcher end before the guest runs. By some run strategies it is started again, and crashes again.
	FaultCrashes FaultKind = "crashes"
	// FaultSilent has the guest run for ever, and never say a word to Forgejo.
	FaultSilent FaultKind = "silent"
	// FaultPowersOff has the guest power off before it has said a word.
	FaultPowersOff FaultKind = "powers-off"
	// FaultPanics has the guest's kernel panic once its runner has reported that its job runs.
	FaultPanics FaultKind = "panics"
	// FaultStaysOn has the guest run on when its job is over.
	FaultStaysOn FaultKind = "stays-on"
	// FaultHolds keeps an instance that is deleted, as when its node does not answer, for as long as the fault is set.
	FaultHolds FaultKind = "holds"
)

// A Fault happens to machines that are seen first when it is set.
type Fault struct {
	Kind FaultKind
	// Machines that it happens to, by their labels. Nil: all.
	Machines labels.Selector
	// Times that it happens. 0: until it is unset.
	Times int
}

type fault struct {
	Fault
	left int
}

// SetFault from the next machine on, until unset is called. Of several that fit, the one that was set first happens.
func (k *KubeVirt) SetFault(f Fault) (unset func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	set := &fault{Fault: f, left: f.Times}
	k.faults = append(k.faults, set)
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.faults = slices.DeleteFunc(k.faults, func(f *fault) bool { return f == set })
	}
}

// strike a machine with its fault, if it has one. It stays the machine's.
func (k *KubeVirt) strike(vm *kubevirtv1.VirtualMachine) FaultKind {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kind, known := k.struck[vm.UID]; known {
		return kind
	}
	k.struck[vm.UID] = ""
	for i, f := range k.faults {
		if !f.fits(vm.Labels) {
			continue
		}
		if f.left--; f.left == 0 {
			k.faults = slices.Delete(k.faults, i, i+1)
		}
		k.struck[vm.UID] = f.Kind
		break
	}
	return k.struck[vm.UID]
}

// faultOf an instance, which is its machine's.
func (k *KubeVirt) faultOf(vmi *kubevirtv1.VirtualMachineInstance) FaultKind {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, o := range vmi.OwnerReferences {
		if kind, known := k.struck[o.UID]; known {
			return kind
		}
	}
	return ""
}

// holds reports whether an instance that is deleted is kept.
func (k *KubeVirt) holds(vmi *kubevirtv1.VirtualMachineInstance) bool {
	if k.faultOf(vmi) != FaultHolds {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.faults, func(f *fault) bool { return f.Kind == FaultHolds && f.fits(vmi.Labels) })
}

func (f *fault) fits(l map[string]string) bool {
	return f.Machines == nil || f.Machines.Matches(labels.Set(l))
}
