package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// An Edge makes services of an environment reachable: names and a certificate on the control plane, a route and the
// certificate's copy in the environment. It never holds back the environment's readiness.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,steading,runtime}
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="HOST",type="string",JSONPath=".status.atProvider.hosts[0]"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Edge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EdgeSpec   `json:"spec"`
	Status EdgeStatus `json:"status,omitempty"`
}

// EdgeSpec is the desired state of an Edge.
type EdgeSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// ForProvider is what to expose.
	ForProvider EdgeParameters `json:"forProvider"`
}

// EdgeParameters is what to expose.
type EdgeParameters struct {
	// Identity of the environment.
	Identity Identity `json:"identity"`
	// Claim that the Edge serves.
	Claim ClaimReference `json:"claim"`
	// Context whose cluster the environment is on, or "platform".
	Context string `json:"context"`
	// Namespace of the environment.
	Namespace string `json:"namespace"`
	// Exposure of the context.
	Exposure Exposure `json:"exposure"`
	// Services to expose.
	// +listType=map
	// +listMapKey=name
	Services []ExposedService `json:"services"`
	// CertificateSecret is the name of the TLS Secret in the environment's namespace.
	CertificateSecret string `json:"certificateSecret"`
}

// Exposure says how services on a context are reached.
type Exposure struct {
	// Zone of their names.
	Zone string `json:"zone"`
	// Ingress they are reached through.
	Ingress steading.ContextIngress `json:"ingress"`
}

// An ExposedService is a service and its host.
type ExposedService struct {
	// Name as the claim has it.
	Name string `json:"name"`
	// Host it is reached at.
	Host string `json:"host"`
	// Service in the environment's namespace, port 80.
	Service string `json:"service"`
}

// EdgeStatus is the observed state of an Edge.
type EdgeStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen.
	// +optional
	AtProvider EdgeObservation `json:"atProvider,omitempty"`
}

// EdgeObservation is what was seen of an Edge.
type EdgeObservation struct {
	// Hosts that are routed.
	// +optional
	// +listType=atomic
	Hosts []string `json:"hosts,omitempty"`
	// Exposed is whether names and routes stand.
	// +optional
	Exposed Verdict `json:"exposed,omitempty"`
	// Certificate is whether the certificate is issued and copied.
	// +optional
	Certificate Verdict `json:"certificate,omitempty"`
}

// A Verdict is true, or false for a reason.
type Verdict struct {
	// OK is whether it is so.
	// +optional
	OK bool `json:"ok,omitempty"`
	// Reason in a word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message in a sentence.
	// +optional
	Message string `json:"message,omitempty"`
}

// EdgeList is a list of edges.
//
// +kubebuilder:object:root=true
type EdgeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Edge `json:"items"`
}

func init() { SchemeBuilder.Register(&Edge{}, &EdgeList{}) }
