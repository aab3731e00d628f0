package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A UsageEvent records one transition of an environment, exactly once. It is immutable, has no owner and outlives the
// environment. Its name derives from the environment's UID and the transition, so that recording twice is recording
// once.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={steading,runtime}
// +kubebuilder:printcolumn:name="TENANT",type="string",JSONPath=".spec.identity.tenant"
// +kubebuilder:printcolumn:name="ENVIRONMENT",type="string",JSONPath=".spec.identity.environment"
// +kubebuilder:printcolumn:name="TRANSITION",type="string",JSONPath=".spec.transition"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".spec.version"
// +kubebuilder:printcolumn:name="TIME",type="date",JSONPath=".spec.time"
type UsageEvent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the transition.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a usage event is immutable"
	Spec UsageEventSpec `json:"spec"`
}

// UsageEventSpec is a transition.
type UsageEventSpec struct {
	// Identity of the environment.
	Identity Identity `json:"identity"`
	// Transition that happened.
	Transition Transition `json:"transition"`
	// Time it was seen to have happened.
	Time metav1.Time `json:"time"`
	// Version deployed, for Provisioned and Started.
	// +optional
	Version string `json:"version,omitempty"`
	// Context it ran on.
	// +optional
	Context string `json:"context,omitempty"`
	// Caps it had.
	// +optional
	Caps *steading.Resources `json:"caps,omitempty"`
}

// Transition of an environment.
// +kubebuilder:validation:Enum=Provisioned;Started;Stopped;Deleted
type Transition string

// Transitions that are recorded.
const (
	TransitionProvisioned Transition = "Provisioned"
	TransitionStarted     Transition = "Started"
	TransitionStopped     Transition = "Stopped"
	TransitionDeleted     Transition = "Deleted"
)

// UsageEventList is a list of usage events.
//
// +kubebuilder:object:root=true
type UsageEventList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []UsageEvent `json:"items"`
}

func init() { SchemeBuilder.Register(&UsageEvent{}, &UsageEventList{}) }
