package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A Release is the runtime of an environment, or one of its components, deployed with Helm into its namespace by the
// namespace's own deployer account.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,steading,runtime}
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".status.atProvider.deployed.version"
// +kubebuilder:printcolumn:name="REVISION",type="integer",JSONPath=".status.atProvider.revision"
// +kubebuilder:printcolumn:name="STATE",type="string",JSONPath=".status.atProvider.state"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Release struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ReleaseSpec   `json:"spec"`
	Status ReleaseStatus `json:"status,omitempty"`
}

// ReleaseSpec is the desired state of a Release.
type ReleaseSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// ForProvider is what to deploy.
	ForProvider ReleaseParameters `json:"forProvider"`
}

// ReleaseParameters is what to deploy: the runtime at a version, or a component.
//
// +kubebuilder:validation:XValidation:rule="has(self.component) != has(self.version)",message="a Release is either the runtime, with a version, or a component"
type ReleaseParameters struct {
	// Identity of the environment.
	Identity Identity `json:"identity"`
	// Claim that the Release serves.
	Claim ClaimReference `json:"claim"`
	// Context whose cluster it is on, or "platform".
	Context string `json:"context"`
	// Namespace to deploy into.
	Namespace string `json:"namespace"`
	// ReleaseName is the Helm release's name: <tenant>-devops, or <tenant>-<component>.
	ReleaseName string `json:"releaseName"`
	// Chart to deploy, by digest.
	Chart Chart `json:"chart"`
	// Version of the runtime image. Absent: it is a component.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Version string `json:"version,omitempty"`
	// Component that it is. Absent: it is the runtime.
	// +optional
	Component *ReleaseComponent `json:"component,omitempty"`
	// Power is Running, or Stopped for zero replicas.
	Power steading.Power `json:"power"`
	// Caps of the namespace, which the runtime's chart sizes its containers within. A component is not deployed anew when
	// they change.
	Caps steading.Resources `json:"caps"`
	// Docker deploys the privileged docker sidecar.
	// +optional
	Docker bool `json:"docker,omitempty"`
	// Registry of the tenant's own image.
	// +optional
	Registry *steading.Registry `json:"registry,omitempty"`
	// Operations marks the platform's own tenant.
	// +optional
	Operations bool `json:"operations,omitempty"`
	// Values are merged over those that derive from the fields above, or over those of the component's valuesFrom.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
}

// ReleaseComponent is what only a component has.
type ReleaseComponent struct {
	// Name of the component.
	Name string `json:"name"`
	// ValuesFrom are Secrets and ConfigMaps of the claim's namespace that hold values, merged in order.
	// +optional
	// +listType=atomic
	ValuesFrom []steading.ValuesFrom `json:"valuesFrom,omitempty"`
}

// ReleaseStatus is the observed state of a Release.
type ReleaseStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen.
	// +optional
	AtProvider ReleaseObservation `json:"atProvider,omitempty"`
}

// ReleaseState is where a Release stands.
// +kubebuilder:validation:Enum=Deploying;RollingOut;Deployed;Failed;RolledBack;Deleting
type ReleaseState string

// States of a Release.
const (
	// ReleaseDeploying has a Helm operation in flight.
	ReleaseDeploying ReleaseState = "Deploying"
	// ReleaseRollingOut is deployed, its workloads are not ready yet.
	ReleaseRollingOut ReleaseState = "RollingOut"
	// ReleaseDeployed is deployed, and its workloads are ready or scaled to zero on purpose.
	ReleaseDeployed ReleaseState = "Deployed"
	// ReleaseFailed could not be deployed.
	ReleaseFailed ReleaseState = "Failed"
	// ReleaseRolledBack failed to upgrade and serves the version before.
	ReleaseRolledBack ReleaseState = "RolledBack"
	// ReleaseDeleting is being uninstalled.
	ReleaseDeleting ReleaseState = "Deleting"
)

// ReleaseObservation is what was seen of a Release.
type ReleaseObservation struct {
	// State in a word.
	// +optional
	State ReleaseState `json:"state,omitempty"`
	// Reason for a state other than Deployed: one of the reasons of the Deployed condition.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message for the state, from Helm, the pod or its controller.
	// +optional
	Message string `json:"message,omitempty"`
	// Revision of the Helm release.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// Deployed is what serves: the last deployment that succeeded.
	// +optional
	Deployed *Deployed `json:"deployed,omitempty"`
	// Image chosen for the version asked for.
	// +optional
	Image *steading.ChosenImage `json:"image,omitempty"`
	// FailedRequest is a digest of the request that failed and was rolled back; the same request is not tried again.
	// +optional
	FailedRequest string `json:"failedRequest,omitempty"`
}

// Deployed is what serves.
type Deployed struct {
	// Version of the runtime, or of the component's chart.
	Version string `json:"version"`
	// Power it is in.
	Power steading.Power `json:"power"`
	// Caps it was deployed with.
	Caps steading.Resources `json:"caps"`
	// Revision of the Helm release it became so with.
	Revision int64 `json:"revision"`
	// Made is when that revision was. Revisions are counted from 1 again when the namespace was deleted and the release installed
	// anew.
	// +optional
	Made *metav1.Time `json:"made,omitempty"`
}

// ReleaseList is a list of releases.
//
// +kubebuilder:object:root=true
type ReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Release `json:"items"`
}

func init() { SchemeBuilder.Register(&Release{}, &ReleaseList{}) }
