package compose

import (
	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectMeta is the metadata of a managed resource: in the system namespace, labelled with the identity it serves, with the
// finalizer that its controller would add first thing. Being made with it saves each a write, and its composite an event of
// those that Crossplane's circuit breaker counts.
func ObjectMeta(name string, id runtimev1.Identity) metav1.ObjectMeta {
	labels := map[string]string{names.LabelTenant: id.Tenant, names.LabelComposite: string(id.UID)}
	if id.Environment != "" {
		labels[names.LabelEnvironment] = id.Environment
	}
	return metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: name, Labels: labels, Finalizers: []string{names.Finalizer}}
}
