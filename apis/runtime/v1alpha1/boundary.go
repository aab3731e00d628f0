package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A Boundary is an environment's namespace on its cluster, with what holds it in: quota, limits, network policy, the
// owners' rights and the account that deploys into it. Deleting it deletes the namespace and waits until it is gone.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,steading,runtime}
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="CONTEXT",type="string",JSONPath=".spec.forProvider.context"
// +kubebuilder:printcolumn:name="NAMESPACE",type="string",JSONPath=".spec.forProvider.namespace"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Boundary struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BoundarySpec   `json:"spec"`
	Status BoundaryStatus `json:"status,omitempty"`
}

// BoundarySpec is the desired state of a Boundary.
type BoundarySpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// ForProvider is what the grant says.
	ForProvider BoundaryParameters `json:"forProvider"`
}

// BoundaryParameters is what the grant says.
type BoundaryParameters struct {
	// Identity of the environment.
	Identity Identity `json:"identity"`
	// Claim that the Boundary serves.
	Claim ClaimReference `json:"claim"`
	// Context whose cluster it is on, or "platform".
	Context string `json:"context"`
	// Namespace to make, <tenant>-<environment>.
	Namespace string `json:"namespace"`
	// Caps of the namespace.
	Caps steading.Resources `json:"caps"`
	// Owners that may read, see logs, exec and port-forward.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Owners []steading.Subject `json:"owners,omitempty"`
	// Docker is whether the privileged docker sidecar may run, which the namespace's Pod Security level follows.
	// +optional
	Docker bool `json:"docker,omitempty"`
	// PullSecretRef names the Secret in steading-system to copy for image pulls.
	// +optional
	PullSecretRef *steading.LocalSecretReference `json:"pullSecretRef,omitempty"`
}

// DefaultLimits are the CPU and memory that a container without limits of its own is limited to in a namespace with these
// caps: a sixteenth of the CPU, from 100m to 500m, and a thirty-second of the memory, from 128Mi to 512Mi. That is far below
// the caps, so that several of them fit.
func DefaultLimits(caps steading.Resources) (cpu, memory resource.Quantity) {
	const mebi = 1 << 20
	m := min(max(caps.Memory.Value()/32, 128*mebi), 512*mebi)
	return *resource.NewMilliQuantity(min(max(caps.CPU.MilliValue()/16, 100), 500), resource.DecimalSI),
		*resource.NewQuantity(m-m%mebi, resource.BinarySI)
}

// BoundaryStatus is the observed state of a Boundary.
type BoundaryStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen.
	// +optional
	AtProvider BoundaryObservation `json:"atProvider,omitempty"`
}

// BoundaryObservation is what was seen of a Boundary.
type BoundaryObservation struct {
	// Namespace that stands.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Quota is what its cluster counted with the caps. Absent until it has.
	// +optional
	Quota *CountedQuota `json:"quota,omitempty"`
	// Blockers say what holds up deletion: the namespace's conditions verbatim, and at most three objects with their
	// finalizers.
	// +optional
	// +listType=atomic
	Blockers []string `json:"blockers,omitempty"`
}

// A CountedQuota is a quota that its cluster counts with: nothing is admitted any more that does not fit into it.
type CountedQuota struct {
	// Generation of the Boundary whose caps it has.
	Generation int64 `json:"generation"`
	// InUse is how much is in use of each resource of which more is in use than its cap, as after a cap was lowered, and zero
	// of the others. Absent: what is in use fits.
	// +optional
	InUse *steading.Resources `json:"inUse,omitempty"`
}

// BoundaryList is a list of boundaries.
//
// +kubebuilder:object:root=true
type BoundaryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Boundary `json:"items"`
}

func init() { SchemeBuilder.Register(&Boundary{}, &BoundaryList{}) }
