package child

import (
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/json"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// longestVolumeLabel of a CDROM's file system, in bytes.
const longestVolumeLabel = 32

// A machine is a VirtualMachine in both of its forms: as it is read, and with all that the template has, be it of a KubeVirt
// newer than this program knows.
type machine struct {
	kubevirtv1.VirtualMachine
	all map[string]any
}

// virtualMachine boots the guest once. What it registered as is on the CDROM that is added.
func virtualMachine(mg *v1alpha1.RunnerInstance) (*unstructured.Unstructured, error) {
	m, err := machineOf(mg.Spec.ForProvider.Config.VM)
	if err != nil {
		return nil, err
	}
	if err := m.ownNetworks(mg.Spec.ForProvider.Config.JobNamespace); err != nil {
		return nil, err
	}
	if err := m.merge(mg); err != nil {
		return nil, errors.Wrap(err, "cannot make a virtual machine of its template")
	}
	u := &unstructured.Unstructured{Object: m.all}
	u.SetGroupVersionKind(VirtualMachine)
	meta := metadata(mg, Key(mg))
	u.SetNamespace(meta.Namespace)
	u.SetName(meta.Name)
	u.SetLabels(union(u.GetLabels(), meta.Labels))
	u.SetAnnotations(union(u.GetAnnotations(), meta.Annotations))
	return u, nil
}

// machineOf reads a pool's template, of which a runner can be made.
func machineOf(vm *steading.RunnerVM) (*machine, error) {
	if err := checkAmounts(vmField, vm.Template.Raw); err != nil {
		return nil, err
	}
	m := &machine{}
	if err := json.UnmarshalCaseSensitivePreserveInts(vm.Template.Raw, &m.VirtualMachine); err != nil {
		return nil, unreadable(vmField, "VirtualMachine", vm.Template.Raw, err)
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(vm.Template.Raw, &m.all); err != nil {
		return nil, refused(vmField, "it is no VirtualMachine: %s", err)
	}
	for k := range m.all {
		if k != "metadata" && k != "spec" {
			return nil, refused(vmField+"."+k, "a template has metadata and spec only")
		}
	}
	return m, m.usable(vm.CredentialsDisk)
}

// usable machines can be made a runner of.
func (m *machine) usable(disk string) error {
	s := m.Spec
	switch {
	case s.Template == nil:
		return refused(vmField+".spec.template", "it is missing: it has to have the machine's instance")
	case s.Running != nil:
		return refused(vmField+".spec.running", "leave it out: a runner's machine is started once")
	case s.RunStrategy != nil && *s.RunStrategy != kubevirtv1.RunStrategyOnce:
		return refused(vmField+".spec.runStrategy", "it is %s and has to be Once: the credential of a runner that ran is spent", *s.RunStrategy)
	}
	if err := m.usableVolumes(disk); err != nil {
		return err
	}
	if err := plain(vmField+".metadata", m.ObjectMeta); err != nil {
		return err
	}
	return plain(vmField+".spec.template.metadata", s.Template.ObjectMeta)
}

func (m *machine) usableVolumes(disk string) error {
	for i, v := range m.Spec.Template.Spec.Volumes {
		field := fmt.Sprintf("%s.spec.template.spec.volumes[%d]", vmField, i)
		if v.Name == disk {
			return refused(field+".name", "%s is the volume of the credentials, which is added: name another in spec.vm.credentialsDisk", disk)
		}
		if v.HostDisk != nil {
			return refused(field+".hostDisk", "it is a file of the node, which runners have no business with")
		}
	}
	if d := m.disk(disk); d != nil && d.CDRom == nil {
		return refused(vmField+".spec.template.spec.domain.devices.disks["+disk+"]", "it is the disk of the credentials, and has to be a cdrom")
	}
	return nil
}

// ownNetworks are in the job namespace, whether the machine or its pod is attached to them.
func (m *machine) ownNetworks(namespace string) error {
	for i, n := range m.Spec.Template.Spec.Networks {
		if n.Multus == nil {
			continue
		}
		if of := networkNamed(n.Multus.NetworkName); of.Namespace != "" && of.Namespace != namespace {
			return refusedNetwork(fmt.Sprintf("%s.spec.template.spec.networks[%d].multus.networkName", vmField, i), of)
		}
	}
	return ownNetworks(vmField+".spec.template.metadata.annotations", m.Spec.Template.ObjectMeta.Annotations, namespace)
}

func (m *machine) disk(name string) *kubevirtv1.Disk {
	for i, d := range m.Spec.Template.Spec.Domain.Devices.Disks {
		if d.Name == name {
			return &m.Spec.Template.Spec.Domain.Devices.Disks[i]
		}
	}
	return nil
}

// merge what makes a runner of a machine.
func (m *machine) merge(mg *v1alpha1.RunnerInstance) error {
	if m.Spec.RunStrategy == nil {
		if err := m.set(string(kubevirtv1.RunStrategyOnce), "spec", "runStrategy"); err != nil {
			return err
		}
	}
	if m.Spec.Template.Spec.TerminationGracePeriodSeconds == nil {
		if err := m.set(int64(0), "spec", "template", "spec", "terminationGracePeriodSeconds"); err != nil {
			return err
		}
	}
	labels := map[string]any{}
	for k, v := range union(m.Spec.Template.ObjectMeta.Labels, Labels(mg)) {
		labels[k] = v
	}
	if err := m.set(labels, "spec", "template", "metadata", "labels"); err != nil {
		return err
	}
	if err := m.ownDisks(mg.Name); err != nil {
		return err
	}
	return m.attach(mg)
}

// attach the credentials.
func (m *machine) attach(mg *v1alpha1.RunnerInstance) error {
	name := mg.Spec.ForProvider.Config.VM.CredentialsDisk
	secret := &kubevirtv1.SecretVolumeSource{SecretName: names.RunnerCredentials(mg.Name)}
	if len(name) <= longestVolumeLabel {
		secret.VolumeLabel = name
	}
	volume := kubevirtv1.Volume{Name: name, VolumeSource: kubevirtv1.VolumeSource{Secret: secret}}
	if err := m.add(&volume, "spec", "template", "spec", "volumes"); err != nil {
		return err
	}
	if m.disk(name) != nil {
		return nil
	}
	disk := kubevirtv1.Disk{Name: name, DiskDevice: kubevirtv1.DiskDevice{CDRom: &kubevirtv1.CDRomTarget{Bus: kubevirtv1.DiskBusSATA}}}
	return m.add(&disk, "spec", "template", "spec", "domain", "devices", "disks")
}

// ownDisks gives the runner DataVolumes of its own where the template makes some: those of all its pool's runners would have
// one name.
func (m *machine) ownDisks(instance string) error {
	own := map[string]string{}
	for _, t := range m.Spec.DataVolumeTemplates {
		own[t.Name] = names.RunnerDisk(instance, t.Name)
	}
	if len(own) == 0 {
		return nil
	}
	if err := m.rename(own, []string{"spec", "dataVolumeTemplates"}, []string{"metadata", "name"}); err != nil {
		return err
	}
	volumes := []string{"spec", "template", "spec", "volumes"}
	if err := m.rename(own, volumes, []string{"dataVolume", "name"}); err != nil {
		return err
	}
	return m.rename(own, volumes, []string{"persistentVolumeClaim", "claimName"})
}

// rename what the items of a list have in a field.
func (m *machine) rename(to map[string]string, list, field []string) error {
	items, _, err := unstructured.NestedSlice(m.all, list...)
	if err != nil {
		return err
	}
	for _, i := range items {
		item, ok := i.(map[string]any)
		if !ok {
			continue
		}
		if was, _, _ := unstructured.NestedString(item, field...); to[was] != "" {
			if err := unstructured.SetNestedField(item, to[was], field...); err != nil {
				return err
			}
		}
	}
	return m.set(items, list...)
}

// add an item to a list.
func (m *machine) add(item any, list ...string) error {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
	if err != nil {
		return err
	}
	items, _, err := unstructured.NestedSlice(m.all, list...)
	if err != nil {
		return err
	}
	return m.set(append(items, u), list...)
}

func (m *machine) set(value any, field ...string) error {
	return unstructured.SetNestedField(m.all, value, field...)
}
