package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Environment is a quota-bound namespace, <tenant>-<name>, on one cluster, with the runtime deployed in it.
// It lives in its tenant's namespace. Its name is at most 42 characters long and has no "--".
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=env,categories=steading
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="POWER",type="string",JSONPath=".status.power"
// +kubebuilder:printcolumn:name="CONTEXT",type="string",JSONPath=".status.context.name"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".status.deployedVersion"
// +kubebuilder:printcolumn:name="HOSTNAME",type="string",JSONPath=".status.hostname",priority=1
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.message"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Environment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EnvironmentSpec   `json:"spec"`
	Status EnvironmentStatus `json:"status,omitempty"`
}

// EnvironmentSpec says what should run, how large, and where.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'runtime' || !has(self.components)",message="components are deployed with type runtime only; remove them or set type: runtime"
type EnvironmentSpec struct {
	// Type is runtime (deployed by the platform), remote-agent or local-agent (records that stay Registered). It cannot
	// be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type is immutable; delete the environment and create it anew"
	Type EnvironmentType `json:"type"`

	// Version is the tag of the runtime image. Without it the environment stays Registered. A new version is admitted
	// again, rolled out, and rolled back by itself when it fails.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9._-]*$`
	Version string `json:"version,omitempty"`

	// State is Running, Stopped (scaled to zero; it still counts against the quota) or Planned (composes nothing and
	// writes in status.plan what would happen). Default Running.
	// +optional
	// +kubebuilder:default=Running
	State EnvironmentState `json:"state,omitempty"`

	// ContextRef names the Context to be placed on; "platform" is the platform's own cluster. Without it the first
	// running Context with room is chosen, by name. Once placed it cannot be changed.
	// +optional
	ContextRef *ContextReference `json:"contextRef,omitempty"`

	// Size is what the environment may use, at most the tenant's quota.perEnvironment. A change is admitted again; a
	// refusal keeps the old size. Default: the tenant's quota.perEnvironment.
	// +optional
	// +kubebuilder:validation:XValidation:rule="[self.cpu, self.memory, self.storage].all(q, string(q).matches('^[0-9]{1,30}([.][0-9]{1,9})?([KMGTPE]i|[numkMGTPE])?$') && quantity(string(q)).compareTo(quantity('1E')) < 0)",message="an amount is zero or more and below 1E, in digits and a unit, without sign and exponent: 8, 500m, 20Gi"
	Size *Resources `json:"size,omitempty"`

	// Docker asks for the docker sidecar, where the tenant is allowed it.
	// +optional
	// +kubebuilder:default={}
	Docker Docker `json:"docker,omitempty"`

	// Expose makes services of the environment reachable by name and with a certificate.
	// +optional
	// +kubebuilder:default={}
	Expose Expose `json:"expose,omitempty"`

	// Components are Helm charts deployed beside the runtime, in the same namespace and within the same size. A change is
	// admitted again; a refusal keeps what runs. One that is removed is uninstalled.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Components []Component `json:"components,omitempty"`
}

// EnvironmentType says who deploys an environment.
// +kubebuilder:validation:Enum=runtime;remote-agent;local-agent
type EnvironmentType string

// Types of environments.
const (
	TypeRuntime     EnvironmentType = "runtime"
	TypeRemoteAgent EnvironmentType = "remote-agent"
	TypeLocalAgent  EnvironmentType = "local-agent"
)

// EnvironmentState is the state asked for.
// +kubebuilder:validation:Enum=Running;Stopped;Planned
type EnvironmentState string

// States an environment may be asked to be in.
const (
	StateRunning EnvironmentState = "Running"
	StateStopped EnvironmentState = "Stopped"
	StatePlanned EnvironmentState = "Planned"
)

// PlatformContext is the reserved context name of the platform's own cluster.
const PlatformContext = "platform"

// ContextReference names a Context of the tenant.
type ContextReference struct {
	// Name of the Context, or "platform".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// Docker asks for the docker sidecar.
type Docker struct {
	// Enabled runs a privileged docker daemon beside the runtime. Default false.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}

// Expose makes services reachable from outside.
type Expose struct {
	// Enabled exposes the services, wherever the placed context has an ingress and a zone. Default true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`

	// Services to expose, each at <service>.<tenant>-<environment>.<zone>. Default [mcp].
	// +optional
	// +kubebuilder:default={mcp}
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +listType=set
	Services []string `json:"services,omitempty"`
}

// A Component is a Helm chart deployed beside the runtime.
type Component struct {
	// Name of the component. Its Helm release is called <tenant>-<name>. Under another name it is another component: the
	// one before is uninstalled.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['devops', 'mcp', 'edge']) && !self.startsWith('devops-')",message="devops, mcp, edge and what begins with devops- are names of the runtime's own objects; choose another"
	Name string `json:"name"`

	// Chart by name. It is taken from the first of the repositories that the operator allows that has it at this version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*$`
	Chart string `json:"chart"`

	// Version of the chart, exactly. It is pinned by digest when it is admitted. A new version is rolled back by itself
	// when it fails.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9._+-]*$`
	Version string `json:"version"`

	// Values for the chart, over all of valuesFrom. They are not secret: what is goes into a Secret that valuesFrom names.
	// At most 32 KiB.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *apiextensionsv1.JSON `json:"values,omitempty"`

	// ValuesFrom are Secrets or ConfigMaps of the tenant's namespace that hold values for the chart. They are merged in
	// order, a later one over an earlier one, and all of them below values. A change of one deploys the component anew.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	ValuesFrom []ValuesFrom `json:"valuesFrom,omitempty"`
}

// ValuesFrom names a key that holds chart values as YAML.
type ValuesFrom struct {
	// Kind is Secret or ConfigMap.
	// +kubebuilder:validation:Enum=Secret;ConfigMap
	Kind string `json:"kind"`
	// Name of the object in the tenant's namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Key in the object. Default values.yaml.
	// +optional
	// +kubebuilder:default=values.yaml
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// EnvironmentPhase sums up an environment in a word.
// +kubebuilder:validation:Enum=Registered;Pending;Provisioning;Running;Failed;Deleting;DeletionBlocked
type EnvironmentPhase string

// Phases of an environment.
const (
	// EnvironmentRegistered is a record: an agent type, no version, or Planned.
	EnvironmentRegistered EnvironmentPhase = "Registered"
	// EnvironmentPending is not admitted or not placed; the conditions Admitted and Placed say why.
	EnvironmentPending EnvironmentPhase = "Pending"
	// EnvironmentProvisioning is being deployed.
	EnvironmentProvisioning EnvironmentPhase = "Provisioning"
	// EnvironmentRunning serves, or is stopped on purpose; status.power tells which.
	EnvironmentRunning EnvironmentPhase = "Running"
	// EnvironmentFailed could not be deployed; the condition Deployed says why.
	EnvironmentFailed EnvironmentPhase = "Failed"
	// EnvironmentDeleting is being deleted.
	EnvironmentDeleting EnvironmentPhase = "Deleting"
	// EnvironmentDeletionBlocked cannot be deleted yet; the condition DeletionBlocked says what blocks it.
	EnvironmentDeletionBlocked EnvironmentPhase = "DeletionBlocked"
)

// Power says whether an environment is scaled to zero.
// +kubebuilder:validation:Enum=Running;Stopped
type Power string

// Powers of an environment.
const (
	PowerRunning Power = "Running"
	PowerStopped Power = "Stopped"
)

// EnvironmentStatus is what is true of an environment.
type EnvironmentStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Phase sums up the environment in a word.
	// +optional
	Phase EnvironmentPhase `json:"phase,omitempty"`

	// Message says what the environment waits for or why it failed. Absent when all is well.
	// +optional
	Message string `json:"message,omitempty"`

	// Power is Running, or Stopped when it is scaled to zero.
	// +optional
	Power Power `json:"power,omitempty"`

	// Namespace is where the environment runs, on the cluster of its context.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Context is where the environment was placed, and why.
	// +optional
	Context *PlacedContext `json:"context,omitempty"`

	// DeployedVersion is the version that was last deployed with success.
	// +optional
	DeployedVersion string `json:"deployedVersion,omitempty"`

	// Image that runs, and why it was chosen.
	// +optional
	Image *ChosenImage `json:"image,omitempty"`

	// Hostname of the first exposed service.
	// +optional
	Hostname string `json:"hostname,omitempty"`

	// Caps are the granted size, enforced by a ResourceQuota.
	// +optional
	Caps *Resources `json:"caps,omitempty"`

	// Components as they are deployed, in the order of the spec; those that are being uninstalled come last.
	// +optional
	// +listType=map
	// +listMapKey=name
	Components []ComponentStatus `json:"components,omitempty"`

	// Plan says, while state is Planned, what would happen, in order.
	// +optional
	// +listType=atomic
	Plan []string `json:"plan,omitempty"`
}

// ComponentStatus is what is true of a component.
type ComponentStatus struct {
	// Name of the component.
	Name string `json:"name"`
	// Chart it is deployed from, with its repository. Absent until it was admitted.
	// +optional
	Chart string `json:"chart,omitempty"`
	// Version of the chart that was last deployed with success.
	// +optional
	Version string `json:"version,omitempty"`
	// State in a word.
	State ComponentState `json:"state"`
	// Message says what the component waits for or why it failed. Absent when all is well.
	// +optional
	Message string `json:"message,omitempty"`
}

// ComponentState is where a component stands.
// +kubebuilder:validation:Enum=Pending;Deploying;Running;Stopped;Failed;RolledBack;Deleting
type ComponentState string

// States of a component.
const (
	// ComponentPending is not admitted yet, or waits for the environment's namespace.
	ComponentPending ComponentState = "Pending"
	// ComponentDeploying is being installed, upgraded, stopped or started.
	ComponentDeploying ComponentState = "Deploying"
	// ComponentRunning is deployed as it is asked for, and its workloads are ready.
	ComponentRunning ComponentState = "Running"
	// ComponentStopped is scaled to zero on purpose.
	ComponentStopped ComponentState = "Stopped"
	// ComponentFailed could not be deployed, and nothing serves.
	ComponentFailed ComponentState = "Failed"
	// ComponentRolledBack could not be changed as it is asked for, and serves as it was before.
	ComponentRolledBack ComponentState = "RolledBack"
	// ComponentDeleting is being uninstalled.
	ComponentDeleting ComponentState = "Deleting"
)

// PlacedContext is where an environment was placed.
type PlacedContext struct {
	// Name of the Context, or "platform".
	Name string `json:"name"`
	// Reason is Requested, FirstWithRoom or PlatformFallback.
	Reason PlacementReason `json:"reason"`
}

// PlacementReason says why a context was chosen.
// +kubebuilder:validation:Enum=Requested;FirstWithRoom;PlatformFallback
type PlacementReason string

// Reasons for a placement.
const (
	PlacementRequested        PlacementReason = "Requested"
	PlacementFirstWithRoom    PlacementReason = "FirstWithRoom"
	PlacementPlatformFallback PlacementReason = "PlatformFallback"
)

// ChosenImage is the image that runs.
type ChosenImage struct {
	// Ref is the image with its tag.
	Ref string `json:"ref"`
	// Choice is Tenant (the tenant's own image) or Canonical (the platform's).
	Choice ImageChoice `json:"choice"`
	// Reason for the choice: Confirmed, NoRegistry, NotPublished, Inconclusive or SubstitutedForPlatformTenant.
	Reason string `json:"reason"`
	// Message gives the reason in a sentence.
	// +optional
	Message string `json:"message,omitempty"`
}

// ImageChoice says whose image runs.
// +kubebuilder:validation:Enum=Tenant;Canonical
type ImageChoice string

// Choices of the runtime image.
const (
	ImageTenant    ImageChoice = "Tenant"
	ImageCanonical ImageChoice = "Canonical"
)

// EnvironmentList is a list of environments.
//
// +kubebuilder:object:root=true
type EnvironmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Environment `json:"items"`
}

func init() { SchemeBuilder.Register(&Environment{}, &EnvironmentList{}) }
