package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An EdgeRemainder is what an Edge that is gone could not clean up within a minute: a DNS record, a certificate or a
// route that something holds on to, or a cluster that does not answer. It is owned by nothing, keeps retrying after 5
// minutes and then up to every 2 hours, at once when it sees that something has changed, and goes when all is clean.
// Deleting it gives up what is left.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={steading,runtime}
// +kubebuilder:printcolumn:name="TENANT",type="string",JSONPath=".spec.identity.tenant"
// +kubebuilder:printcolumn:name="ENVIRONMENT",type="string",JSONPath=".spec.identity.environment"
// +kubebuilder:printcolumn:name="LEFT",type="string",JSONPath=".status.left"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type EdgeRemainder struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is where to look.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="where to look for what is left is immutable"
	Spec EdgeRemainderSpec `json:"spec"`
	// Status is what is left.
	// +optional
	Status EdgeRemainderStatus `json:"status,omitempty"`
}

// EdgeRemainderSpec says where to look for what an Edge left, and whose it is.
type EdgeRemainderSpec struct {
	// Identity of the environment. Only what carries it is deleted.
	Identity Identity `json:"identity"`
	// Claim that the Edge served.
	Claim ClaimReference `json:"claim"`
	// Context whose cluster the environment was on, or "platform".
	Context string `json:"context"`
	// Namespace of the environment.
	Namespace string `json:"namespace"`
	// Domain of the certificate, without the asterisk.
	Domain string `json:"domain"`
}

// EdgeRemainderStatus is what is left of an Edge.
type EdgeRemainderStatus struct {
	// Left are the objects that are left, with their finalizers, and what could not be looked at.
	// +optional
	// +listType=atomic
	Left []string `json:"left,omitempty"`
}

// EdgeRemainderList is a list of what edges left.
//
// +kubebuilder:object:root=true
type EdgeRemainderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EdgeRemainder `json:"items"`
}

func init() { SchemeBuilder.Register(&EdgeRemainder{}, &EdgeRemainderList{}) }
