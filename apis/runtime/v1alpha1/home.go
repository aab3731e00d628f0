package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A Home is a tenant's namespace on the control plane: its owners' rights, its backstop quota, its network policy, and
// the tenant's settings that admission reads.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,steading,runtime}
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="NAMESPACE",type="string",JSONPath=".status.atProvider.namespace"
// +kubebuilder:printcolumn:name="ENVIRONMENTS",type="integer",JSONPath=".status.atProvider.environments.total"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Home struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   HomeSpec   `json:"spec"`
	Status HomeStatus `json:"status,omitempty"`
}

// HomeSpec is the desired state of a Home.
type HomeSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// ForProvider is what the tenant's claim says.
	ForProvider HomeParameters `json:"forProvider"`
}

// HomeParameters is what the tenant's claim says.
type HomeParameters struct {
	// Identity of the tenant.
	Identity Identity `json:"identity"`
	// Claim that the Home serves.
	Claim ClaimReference `json:"claim"`
	// Namespace to make, tenant-<tenant>.
	Namespace string `json:"namespace"`
	// Settings of the tenant.
	Settings steading.TenantSpec `json:"settings"`
}

// HomeStatus is the observed state of a Home.
type HomeStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen.
	// +optional
	AtProvider HomeObservation `json:"atProvider,omitempty"`
}

// HomeObservation is what was seen of a Home.
type HomeObservation struct {
	// Namespace that stands.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Environments counts the tenant's environments. Written by admission.
	// +optional
	Environments *steading.EnvironmentCounts `json:"environments,omitempty"`
	// Usage is what admission counts with. Written by admission.
	// +optional
	Usage *steading.Usage `json:"usage,omitempty"`
	// RecentUsageEvents are the last twenty, newest first. Written by admission.
	// +optional
	// +listType=atomic
	RecentUsageEvents []steading.UsageRecord `json:"recentUsageEvents,omitempty"`
}

// HomeList is a list of homes.
//
// +kubebuilder:object:root=true
type HomeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Home `json:"items"`
}

func init() { SchemeBuilder.Register(&Home{}, &HomeList{}) }
