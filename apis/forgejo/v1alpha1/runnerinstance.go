package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A RunnerInstance is the record of one runner: what it was made with, what it registered as, and what became of it. Its
// external resource is the registration with Forgejo; the Job or VirtualMachine that runs it and the credential that it is
// given come and go with it. It takes one job. Once it is judged its registration and credential are gone, while the record
// and what ran it are kept as history. Deleting it kills the runner.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,steading,forgejo}
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.atProvider.phase"
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.atProvider.reason"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="FORGEJO",type="string",JSONPath=".status.atProvider.state",priority=1
// +kubebuilder:printcolumn:name="CHILD",type="string",JSONPath=".status.atProvider.child.name",priority=1
// +kubebuilder:printcolumn:name="NAMESPACE",type="string",JSONPath=".spec.forProvider.config.jobNamespace",priority=1
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",priority=1
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status",priority=1
type RunnerInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   RunnerInstanceSpec   `json:"spec"`
	Status RunnerInstanceStatus `json:"status,omitempty"`
}

// RunnerInstanceSpec is the desired state of a RunnerInstance.
type RunnerInstanceSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// ForProvider is what the runner was made with.
	ForProvider RunnerInstanceParameters `json:"forProvider"`
}

// RunnerInstanceParameters is what the runner was made with.
//
// +kubebuilder:validation:XValidation:rule="has(self.job) == has(oldSelf.job) && (!has(self.job) || self.job == oldSelf.job)",message="the job that a runner was made for does not change"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.drain) || !oldSelf.drain || (has(self.drain) && self.drain)",message="a runner that is drained is not taken back"
type RunnerInstanceParameters struct {
	// Identity of the tenant; the UID is the pool's composite's.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="whose a runner is does not change"
	Identity runtimev1.Identity `json:"identity"`
	// Claim of the pool. The token's Secret is read from the claim's namespace.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="whose a runner is does not change"
	Claim runtimev1.ClaimReference `json:"claim"`
	// Pool that made it.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="whose a runner is does not change"
	Pool PoolReference `json:"pool"`
	// Config that it was made with, and runs with to its end.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a runner keeps the config that it was made with"
	Config RunnerConfig `json:"config"`
	// Job in the queue that it was made for. Absent for spares. Unless the config's assignment is Targeted it may take
	// another one.
	// +optional
	Job *QueuedJob `json:"job,omitempty"`
	// Drain asks that the runner ends, unless it has a job in hand. Set by its pool.
	// +optional
	Drain bool `json:"drain,omitempty"`
}

// PoolReference names the Runner that made an instance.
type PoolReference struct {
	// Name of the Runner.
	Name string `json:"name"`
	// UID of the Runner.
	UID types.UID `json:"uid"`
}

// RunnerConfig is the part of a pool's settings that a runner is made with. Two runners of equal configs are alike.
type RunnerConfig struct {
	// Forgejo is the server that it registers with.
	Forgejo steading.ForgejoServer `json:"forgejo"`
	// Labels that it declares.
	// +listType=set
	Labels []string `json:"labels"`
	// JobNamespace that it runs in.
	JobNamespace string `json:"jobNamespace"`
	// Assignment says which job it takes.
	Assignment steading.RunnerAssignment `json:"assignment"`
	// StartupTimeoutSeconds is how long it may take until the server has seen it.
	StartupTimeoutSeconds int32 `json:"startupTimeoutSeconds"`
	// JobTimeoutSeconds is how long it may live without a job, and then with it.
	JobTimeoutSeconds int32 `json:"jobTimeoutSeconds"`
	// Pod it runs in, with the image that counts in runnerImage.
	// +optional
	Pod *steading.RunnerPod `json:"pod,omitempty"`
	// VM it runs in.
	// +optional
	VM *steading.RunnerVM `json:"vm,omitempty"`
}

// A QueuedJob is one attempt of a job in a server's queue.
type QueuedJob struct {
	// Handle of the attempt, unique on the server. Empty for servers older than Forgejo 15.
	// +optional
	Handle string `json:"handle,omitempty"`
	// ID of the job.
	ID int64 `json:"id"`
	// Name of the job.
	// +optional
	Name string `json:"name,omitempty"`
	// OwnerID of the repository's owner.
	// +optional
	OwnerID int64 `json:"ownerID,omitempty"`
	// RepositoryID that the job is of.
	// +optional
	RepositoryID int64 `json:"repositoryID,omitempty"`
}

// RunnerInstanceStatus is the observed state of a RunnerInstance.
type RunnerInstanceStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen.
	// +optional
	AtProvider RunnerInstanceObservation `json:"atProvider,omitempty"`
}

// RunnerPhase sums up a runner in a word.
// +kubebuilder:validation:Enum=Pending;Completed;Failed
type RunnerPhase string

// Phases of a runner. What it does while it is pending Forgejo says.
const (
	RunnerPending   RunnerPhase = "Pending"
	RunnerCompleted RunnerPhase = "Completed"
	RunnerFailed    RunnerPhase = "Failed"
)

// RunnerReason is the reason of a verdict.
// +kubebuilder:validation:Enum=RunnerConsumed;Drained;JobGone;JobTimeout;StartupTimeout;RunnerExited;RunnerLost;RegistrationLost;CredentialsLost;CreateFailed
type RunnerReason string

// Reasons of verdicts.
const (
	// RunnerConsumed took its job and reported it, whatever the job's result. Completed.
	RunnerConsumed RunnerReason = "RunnerConsumed"
	// Drained had no job in hand when its pool did not want it any more. Completed.
	Drained RunnerReason = "Drained"
	// JobGone ended since the one job that it was to take does not wait any more: it was cancelled, or another runner took it.
	// Completed.
	JobGone RunnerReason = "JobGone"
	// JobTimeout lived longer than jobTimeoutSeconds without a job, or with one. Failed.
	JobTimeout RunnerReason = "JobTimeout"
	// StartupTimeout was not registered or not seen by the server within startupTimeoutSeconds. Failed.
	StartupTimeout RunnerReason = "StartupTimeout"
	// RunnerExited ended without having reported a job. Failed.
	RunnerExited RunnerReason = "RunnerExited"
	// RunnerLost ended with a job in hand. Failed.
	RunnerLost RunnerReason = "RunnerLost"
	// RegistrationLost was taken off the server before the server had ever seen it. Failed.
	RegistrationLost RunnerReason = "RegistrationLost"
	// CredentialsLost has a registration whose credential is gone before anything could run with it. Failed.
	CredentialsLost RunnerReason = "CredentialsLost"
	// CreateFailed could not be made for a reason that trying again does not change: its registration or its Job was refused.
	// Failed.
	CreateFailed RunnerReason = "CreateFailed"
)

// ForgejoState is what the server says of a runner.
// +kubebuilder:validation:Enum=Offline;Idle;Active;Gone
type ForgejoState string

// States of a runner on the server.
const (
	// StateOffline was never seen, or not for a minute.
	StateOffline ForgejoState = "Offline"
	// StateIdle waits for a job; or has taken one within the last second or so.
	StateIdle ForgejoState = "Idle"
	// StateActive has a job in hand.
	StateActive ForgejoState = "Active"
	// StateGone is not registered any more.
	StateGone ForgejoState = "Gone"
)

// RunnerInstanceObservation is what was seen of a runner.
type RunnerInstanceObservation struct {
	// Phase sums up the runner in a word.
	// +optional
	Phase RunnerPhase `json:"phase,omitempty"`
	// Reason of the verdict. Empty while there is none.
	// +optional
	Reason RunnerReason `json:"reason,omitempty"`
	// Message says more of the verdict, or what the runner waits for.
	// +optional
	Message string `json:"message,omitempty"`
	// Registration with the server. Absent until there is one. It stays when it is taken off, to tell what it was.
	// +optional
	Registration *Registration `json:"registration,omitempty"`
	// State of the runner on the server, when it was last asked.
	// +optional
	State ForgejoState `json:"state,omitempty"`
	// Child that runs the runner. Absent until it was made.
	// +optional
	Child *ChildReference `json:"child,omitempty"`
	// StartTime is when the child's pod or machine was seen to run. Absent until then.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// OnlineTime is when the server was seen to have heard of the runner. Absent until then.
	// +optional
	OnlineTime *metav1.Time `json:"onlineTime,omitempty"`
	// ActiveTime is when the runner was seen to have a job. Absent until then, and for short jobs for ever.
	// +optional
	ActiveTime *metav1.Time `json:"activeTime,omitempty"`
	// CompletionTime of the verdict.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Released is whether nothing of a judged runner is left but history: it is not registered, has no credential, and its
	// child does not run. Until then it counts as live.
	// +optional
	Released bool `json:"released,omitempty"`
}

// Registration of a runner with Forgejo. The token that was told with it is in the credential's Secret only.
type Registration struct {
	// ID on the server.
	ID int64 `json:"id"`
	// UUID that the runner names itself by.
	UUID string `json:"uuid"`
	// OwnerID is the user whose jobs it serves, by the id on the server, where the pool's scope is a user: by the token of
	// another one nothing can be learned of it. Absent in other scopes.
	// +optional
	OwnerID int64 `json:"ownerID,omitempty"`
}

// ChildReference names what runs a runner, in the job namespace.
type ChildReference struct {
	// Kind of the child, Job or VirtualMachine.
	Kind string `json:"kind"`
	// Name of it, the instance's.
	Name string `json:"name"`
	// UID of it: one of the same name that was made anew by somebody is not the runner's.
	UID types.UID `json:"uid"`
}

// RunnerInstanceList is a list of runner instances.
//
// +kubebuilder:object:root=true
type RunnerInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RunnerInstance `json:"items"`
}

func init() { SchemeBuilder.Register(&RunnerInstance{}, &RunnerInstanceList{}) }
