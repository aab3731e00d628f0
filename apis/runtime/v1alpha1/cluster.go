package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A Cluster is the target cluster behind a Context: its last good credential, whether it is reached, and the guard
// policies on it. It is kept until nothing is placed on it any more.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,steading,runtime}
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="SERVER",type="string",JSONPath=".spec.forProvider.server"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".status.atProvider.version"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterSpec   `json:"spec"`
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterSpec is the desired state of a Cluster.
type ClusterSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// ForProvider is what the context's claim says.
	ForProvider ClusterParameters `json:"forProvider"`
}

// ClusterParameters is what the context's claim says.
type ClusterParameters struct {
	// Identity of the tenant; the UID is the context's composite's.
	Identity Identity `json:"identity"`
	// Claim that the Cluster serves. Its Secrets are read from the claim's namespace.
	Claim ClaimReference `json:"claim"`
	// Context by name.
	Context string `json:"context"`
	// Server is the API server's address.
	Server string `json:"server"`
	// CABundle that proves the server, PEM.
	CABundle []byte `json:"caBundle"`
	// Credentials for it.
	Credentials steading.ContextCredentials `json:"credentials"`
	// MaxEnvironments it takes.
	MaxEnvironments int32 `json:"maxEnvironments"`
	// Ingress says where exposed services are reached.
	// +optional
	Ingress *steading.ContextIngress `json:"ingress,omitempty"`
	// Zone of the exposed services' names.
	// +optional
	Zone string `json:"zone,omitempty"`
	// Drain takes no more environments.
	// +optional
	Drain bool `json:"drain,omitempty"`
}

// ClusterStatus is the observed state of a Cluster.
type ClusterStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen.
	// +optional
	AtProvider ClusterObservation `json:"atProvider,omitempty"`
}

// ClusterObservation is what was seen of a Cluster.
type ClusterObservation struct {
	// Version of the API server.
	// +optional
	Version string `json:"version,omitempty"`
	// Reachable is whether the API server answers, with the credential that is kept.
	// +optional
	Reachable bool `json:"reachable,omitempty"`
	// Guarded is whether the guard policies are installed.
	// +optional
	Guarded bool `json:"guarded,omitempty"`
	// GuardMessage says why they are not.
	// +optional
	GuardMessage string `json:"guardMessage,omitempty"`
	// Credential says where the kept credential came from, and from which generation of it. It never holds the
	// credential.
	// +optional
	Credential string `json:"credential,omitempty"`
	// Environments that are on it. Written by admission.
	// +optional
	Environments *steading.ContextUse `json:"environments,omitempty"`
}

// ClusterList is a list of clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}

func init() { SchemeBuilder.Register(&Cluster{}, &ClusterList{}) }
