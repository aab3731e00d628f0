package kubevirt

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

// scheduler that no launcher pod waits for in vain: there is none of the name, and none is needed.
const scheduler = "kubevirt-stand-in"

// launchers are the pods that guests run in.
var launchers = labels.SelectorFromSet(labels.Set{kubevirtv1.AppLabel: "virt-launcher"})

// launcher is the pod that an instance's guest runs in. It has the instance's labels, counts against quotas, and mounts the
// Secrets that are its disks.
func launcher(vmi *kubevirtv1.VirtualMachineInstance) *corev1.Pod {
	l := maps.Clone(vmi.Labels)
	if l == nil {
		l = map[string]string{}
	}
	l[kubevirtv1.AppLabel], l[kubevirtv1.CreatedByLabel] = "virt-launcher", string(vmi.UID)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: vmi.Namespace, Name: "virt-launcher-" + vmi.Name + "-" + string(vmi.UID)[:5], Labels: l,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vmi, kubevirtv1.VirtualMachineInstanceGroupVersionKind)},
		},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false),
			TerminationGracePeriodSeconds: vmi.Spec.TerminationGracePeriodSeconds,
			SecurityContext:               &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](107), RunAsNonRoot: ptr.To(true)},
			Containers: []corev1.Container{{
				Name: "compute", Image: "quay.io/kubevirt/virt-launcher:v1.6.0",
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}},
				},
			}},
		},
	}
	for _, v := range vmi.Spec.Volumes {
		if v.Secret != nil {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: v.Secret.SecretName}}})
		}
	}
	return pod
}
