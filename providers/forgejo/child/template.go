package child

import (
	"errors"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// podTemplate reads a pool's template, of which a runner can be made.
func podTemplate(p *steading.RunnerPod) (*corev1.PodTemplateSpec, error) {
	if p == nil {
		return nil, refused("spec.pod", "the pool has neither a pod nor a virtual machine")
	}
	if err := checkAmounts(podField, p.Template.Raw); err != nil {
		return nil, err
	}
	t := &corev1.PodTemplateSpec{}
	strict, err := json.UnmarshalStrict(p.Template.Raw, t)
	if err != nil {
		return nil, unreadable(podField, "template of a pod", p.Template.Raw, err)
	}
	if len(strict) > 0 {
		return nil, refused(podField, "%s", strict[0])
	}
	if err := plain(podField+".metadata", t.ObjectMeta); err != nil {
		return nil, err
	}
	return t, usable(&t.Spec, p.JobContainer)
}

// checkAmounts before a template is read as what it is a template of. What is no JSON is told by whoever reads that.
func checkAmounts(field string, raw []byte) error {
	var template any
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &template); err != nil {
		return nil //nolint:nilerr // Told by the reader.
	}
	if err := kit.CheckAmounts(template); err != nil {
		return refused(field, "%s", err)
	}
	return nil
}

// unreadable is a template that is none. Of an amount it is told which, since the error does not.
func unreadable(field, what string, raw []byte, err error) error {
	var template any
	if errors.Is(err, resource.ErrFormatWrong) && json.UnmarshalCaseSensitivePreserveInts(raw, &template) == nil {
		if at := kit.BadAmount(template); at != "" {
			return refused(field+"."+at, "it is no amount: write digits and a unit, such as 500m or 2Gi")
		}
	}
	return refused(field, "it is no %s: %s", what, err)
}

// usable pods can be made a runner of.
func usable(s *corev1.PodSpec, jobContainer string) error {
	main := container(s, jobContainer)
	switch {
	case main == nil:
		return refused(podField+".spec.containers", "none is called %s, which spec.pod.jobContainer says the runner is in", jobContainer)
	case len(main.Command) > 0 || len(main.Args) > 0:
		return refused(podField+".spec.containers["+jobContainer+"]", "it has a command or args, and the runner is what it runs: leave them out")
	case s.RestartPolicy != "" && s.RestartPolicy != corev1.RestartPolicyNever:
		return refused(podField+".spec.restartPolicy", "it is %s and has to be Never: the credential of a runner that ran is spent", s.RestartPolicy)
	}
	for i, v := range s.Volumes {
		if reservedVolume(v.Name) {
			return refused(fmt.Sprintf("%s.spec.volumes[%d].name", podField, i), "%s is the name of a volume that is added", v.Name)
		}
	}
	if err := usableContainers(podField+".spec.initContainers", s.InitContainers); err != nil {
		return err
	}
	return usableContainers(podField+".spec.containers", s.Containers)
}

// usableContainers have none of the names that are added, nothing where the job finds the runner, and no way to its
// credential.
func usableContainers(field string, all []corev1.Container) error {
	for i, c := range all {
		if c.Name == programVolume {
			return refused(fmt.Sprintf("%s[%d].name", field, i), "%s is the name of a container that is added", c.Name)
		}
		for j, m := range c.VolumeMounts {
			at := fmt.Sprintf("%s[%d].volumeMounts[%d]", field, i, j)
			if reservedVolume(m.Name) {
				return refused(at+".name", "%s is for the container of the job alone", m.Name)
			}
			if p := path.Clean(m.MountPath); p == "/" || p == reservedFolder || strings.HasPrefix(p, reservedFolder+"/") {
				return refused(at+".mountPath", "%s is where the runner is put: use another folder", m.MountPath)
			}
		}
	}
	return nil
}

func reservedVolume(name string) bool { return name == programVolume || name == credentialsVolume }

// plain metadata of a template has no labels that make it look like somebody else's, and nothing that keeps what is made of it
// from being deleted.
func plain(field string, m metav1.ObjectMeta) error {
	for k := range m.Labels {
		if k == names.LabelManagedBy || strings.HasPrefix(k, names.LabelPrefix) {
			return refused(field+".labels", "%s is a label that is added: leave it out", k)
		}
	}
	if len(m.Finalizers) > 0 || len(m.OwnerReferences) > 0 {
		return refused(field, "finalizers and ownerReferences keep a runner from being deleted, or have it deleted: leave them out")
	}
	return nil
}
