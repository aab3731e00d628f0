package child

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// Kinds of children.
var (
	Job            = batchv1.SchemeGroupVersion.WithKind("Job")
	VirtualMachine = schema.GroupVersionKind{Group: kubevirtv1.SchemeGroupVersion.Group, Version: "v1", Kind: "VirtualMachine"}
	// Instance is a VirtualMachine that runs. It has the VirtualMachine's name.
	Instance = VirtualMachine.GroupVersion().WithKind("VirtualMachineInstance")
)

// A Registration is what a runner needs to connect to Forgejo.
type Registration struct {
	// ID on the server.
	ID int64
	// UUID that the runner names itself by.
	UUID string
	// Token that proves it.
	Token string
}

// KindOf the child of a config.
func KindOf(c v1alpha1.RunnerConfig) schema.GroupVersionKind {
	if c.VM != nil {
		return VirtualMachine
	}
	return Job
}

// Of makes the child of a runner that is registered as uuid. The error is a [RefusedError] when its template cannot be used.
func Of(mg *v1alpha1.RunnerInstance, uuid string) (client.Object, error) {
	if mg.Spec.ForProvider.Config.VM != nil {
		return virtualMachine(mg)
	}
	return job(mg, uuid)
}

// Key of the child.
func Key(mg *v1alpha1.RunnerInstance) client.ObjectKey {
	return client.ObjectKey{Namespace: mg.Spec.ForProvider.Config.JobNamespace, Name: mg.Name}
}

// CredentialsKey of the Secret beside the child.
func CredentialsKey(mg *v1alpha1.RunnerInstance) client.ObjectKey {
	return client.ObjectKey{Namespace: mg.Spec.ForProvider.Config.JobNamespace, Name: names.RunnerCredentials(mg.Name)}
}

// Labels of all that belongs to a runner in its job namespace.
func Labels(mg *v1alpha1.RunnerInstance) map[string]string {
	l := kit.Labels(mg.Spec.ForProvider.Identity)
	l[names.LabelPool], l[names.LabelRunner] = mg.Spec.ForProvider.Pool.Name, mg.Name
	return l
}

// Ours reports whether an object of the job namespace belongs to the runner.
func Ours(mg *v1alpha1.RunnerInstance, o client.Object) bool {
	return kit.Stamped(o, mg.Spec.ForProvider.Identity) && o.GetLabels()[names.LabelRunner] == mg.Name
}

// metadata of what belongs to a runner.
func metadata(mg *v1alpha1.RunnerInstance, key client.ObjectKey) metav1.ObjectMeta {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	kit.Stamp(o, mg.Spec.ForProvider.Identity)
	o.Labels = Labels(mg)
	return o.ObjectMeta
}

// union of two maps. Of what both have it takes the second's.
func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return all
}
