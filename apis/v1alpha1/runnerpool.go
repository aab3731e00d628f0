package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A RunnerPool gives every queued Forgejo Actions job that it serves a runner of its own, which registers, runs that one
// job and disappears. It lives in its tenant's namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rp,categories=steading
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="WAITING",type="integer",JSONPath=".status.waiting"
// +kubebuilder:printcolumn:name="AVAILABLE",type="integer",JSONPath=".status.available"
// +kubebuilder:printcolumn:name="ACTIVE",type="integer",JSONPath=".status.active"
// +kubebuilder:printcolumn:name="LIVE",type="integer",JSONPath=".status.live"
// +kubebuilder:printcolumn:name="MAX",type="integer",JSONPath=".spec.maxRunners"
// +kubebuilder:printcolumn:name="SERVER",type="string",JSONPath=".spec.forgejo.url",priority=1
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.message"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type RunnerPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   RunnerPoolSpec   `json:"spec"`
	Status RunnerPoolStatus `json:"status,omitempty"`
}

// Defaults of a RunnerPool.
const (
	// DefaultTokenKey is the key of the token in its Secret.
	DefaultTokenKey = "token"
	// DefaultJobContainer is the container of a pod's template that the runner runs in.
	DefaultJobContainer = "job"
)

// RunnerPoolSpec says which jobs the pool serves, with what, and with how many runners at most.
//
// +kubebuilder:validation:XValidation:rule="has(self.pod) != has(self.vm)",message="a pool needs exactly one of pod and vm"
// +kubebuilder:validation:XValidation:rule="self.minRunners <= self.maxRunners",message="minRunners must not exceed maxRunners"
// +kubebuilder:validation:XValidation:rule="!has(self.schedule) || self.schedule.all(s, s.minRunners <= self.maxRunners)",message="minRunners of a schedule must not exceed maxRunners"
// +kubebuilder:validation:XValidation:rule="self.fairness == 'None' || self.assignment == 'Targeted'",message="fairness needs assignment Targeted: a runner that takes any job takes the oldest"
// +kubebuilder:validation:XValidation:rule="self.startupTimeoutSeconds <= self.jobTimeoutSeconds",message="startupTimeoutSeconds must not exceed jobTimeoutSeconds"
type RunnerPoolSpec struct {
	// Forgejo is the server whose jobs are served, and as who. A change drains the runners that are out, but for those
	// with a job in hand.
	Forgejo ForgejoServer `json:"forgejo"`

	// Labels that the pool serves: a job is served when all its runs-on labels are among them. They are names only; every
	// job runs on the runner itself (":host"). A change drains the runners that are out, but for those with a job in hand.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[^\s,:?]([^,:?]*[^\s,:?])?$`
	// +listType=set
	Labels []string `json:"labels"`

	// JobNamespace is where runners run. It has to carry the label steading.dev/runners-for with the tenant's name, which an
	// operator sets. A change drains the runners that are out, but for those with a job in hand.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	JobNamespace string `json:"jobNamespace"`

	// MinRunners are kept ready on top of what the queue needs. Default 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	MinRunners int32 `json:"minRunners"`

	// MaxRunners at a time, whatever they do. Lowering it stops none that is out. 0 makes no runners. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	MaxRunners int32 `json:"maxRunners"`

	// Schedule raises or lowers minRunners in windows of time. Of windows that overlap the first in the list counts.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Schedule []ScheduledMinimum `json:"schedule,omitempty"`

	// PollIntervalSeconds is how often the queue is looked at, Forgejo has no other way to tell. Pools that share a server,
	// a scope and a token share the poll, at the shortest interval of theirs. Default 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=3600
	PollIntervalSeconds int32 `json:"pollIntervalSeconds"`

	// StartupTimeoutSeconds is how long a runner may take until the server has seen it. Then it failed with StartupTimeout:
	// an image that cannot be pulled, a pod that fits nowhere, a guest that does not boot. Default 600. A change drains the
	// runners that are out, but for those with a job in hand.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	StartupTimeoutSeconds int32 `json:"startupTimeoutSeconds"`

	// JobTimeoutSeconds is how long a runner may have its job, from when it was seen to have it; and before that, how long it
	// may live without one, from its record's creation, start included. It is the backstop for what is wedged. Forgejo itself
	// ends a job after three hours. Default 11400, three hours and ten minutes. A change drains the runners that are out, but
	// for those with a job in hand.
	// +optional
	// +kubebuilder:default=11400
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=604800
	JobTimeoutSeconds int32 `json:"jobTimeoutSeconds"`

	// IdleTimeoutSeconds is how long a runner may wait for a job that neither the queue nor minRunners needs, as when its job
	// was cancelled or a window of the schedule ended. Then it is drained. Default 0: it waits until jobTimeoutSeconds are over.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	IdleTimeoutSeconds int32 `json:"idleTimeoutSeconds"`

	// SuccessfulJobsHistoryLimit is how many completed runners are kept with their Job or VirtualMachine, and so their logs,
	// newest first. Default 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SuccessfulJobsHistoryLimit int32 `json:"successfulJobsHistoryLimit"`

	// FailedJobsHistoryLimit is how many failed runners are kept likewise. Default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	FailedJobsHistoryLimit int32 `json:"failedJobsHistoryLimit"`

	// Suspend makes no more runners and drains those without a job in hand. Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Assignment says which job a runner takes. Any: whichever the server gives it, the oldest; another pool's runner may
	// take a job first, and the next poll makes up for it. Targeted: the one job it was made for, which needs Forgejo 15 and
	// a runner from 12.8 on; spares take any. Default Any. A change drains the runners that are out, but for those with a job
	// in hand.
	// +optional
	// +kubebuilder:default=Any
	Assignment RunnerAssignment `json:"assignment"`

	// Fairness says whose jobs come first when there are more than maxRunners. None: the oldest. Owner: the owner, user or
	// organization, with the fewest runners; that needs assignment Targeted. Default None.
	// +optional
	// +kubebuilder:default=None
	Fairness RunnerFairness `json:"fairness"`

	// Pod runs each job in a pod.
	// +optional
	Pod *RunnerPod `json:"pod,omitempty"`

	// VM runs each job in a KubeVirt virtual machine.
	// +optional
	VM *RunnerVM `json:"vm,omitempty"`
}

// ForgejoServer says which server's jobs are served, of which scope, and with which token.
type ForgejoServer struct {
	// URL of the server, https://host[:port][/path]. Loopback and link-local addresses are refused unless the operator
	// allows them. Redirects are not followed.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://(\[[0-9a-fA-F:.]+\]|[^/?#@\s:\[\]]+)(:[0-9]{1,5})?(/[^?#\s]*)?$`
	URL string `json:"url"`

	// CABundle that proves the server, as PEM, base64, for the platform and for runners: a pod's runner trusts it besides the
	// CAs of its image, and a guest finds it as the file ca.crt. Default: the CAs that the provider's image and the runner's
	// trust. A change drains the runners that are out, but for those with a job in hand.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	CABundle []byte `json:"caBundle,omitempty"`

	// Scope of the jobs and of the runners' registrations. The smaller it is, the weaker a token does.
	Scope ForgejoScope `json:"scope"`

	// TokenSecretRef names the Secret of the tenant's namespace with the access token. It is read there and never copied.
	TokenSecretRef TokenSecretReference `json:"tokenSecretRef"`
}

// ForgejoScope is what runners are registered for.
//
// +kubebuilder:validation:XValidation:rule="[has(self.instance), has(self.organization), has(self.user), has(self.repository)].exists_one(x, x)",message="scope needs exactly one of instance, organization, user and repository"
type ForgejoScope struct {
	// Instance serves all jobs of the server. The token is an administrator's, with scope write:admin.
	// +optional
	Instance *WholeScope `json:"instance,omitempty"`

	// Organization by name. The token is an owner's, with scope write:organization.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[0-9a-zA-Z]([-._]?[0-9a-zA-Z])*$`
	Organization string `json:"organization,omitempty"`

	// User serves all jobs of the user whose token it is, with scope write:user.
	// +optional
	User *WholeScope `json:"user,omitempty"`

	// Repository as owner/name. The token has scope write:repository.
	// +optional
	// +kubebuilder:validation:MaxLength=141
	// +kubebuilder:validation:Pattern=`^[0-9a-zA-Z]([-._]?[0-9a-zA-Z])*/[-._0-9a-zA-Z]+$`
	Repository string `json:"repository,omitempty"`
}

// WholeScope is a scope that needs no name.
type WholeScope struct{}

// TokenSecretReference names a key of a Secret.
type TokenSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key in it. Default token.
	// +optional
	// +kubebuilder:default=token
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// A ScheduledMinimum is a window of time with a minRunners of its own.
type ScheduledMinimum struct {
	// Start of the window, as cron has it: "0 8 * * 1-5".
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	Start string `json:"start"`
	// DurationSeconds of the window, from a minute to a week.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=604800
	DurationSeconds int32 `json:"durationSeconds"`
	// TimeZone that start is in, by its name in the IANA database. Default UTC.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone"`
	// MinRunners in the window.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	MinRunners int32 `json:"minRunners"`
}

// RunnerAssignment says which job a runner takes.
// +kubebuilder:validation:Enum=Any;Targeted
type RunnerAssignment string

// Assignments of runners to jobs.
const (
	AssignAny      RunnerAssignment = "Any"
	AssignTargeted RunnerAssignment = "Targeted"
)

// RunnerFairness says whose jobs come first.
// +kubebuilder:validation:Enum=None;Owner
type RunnerFairness string

// Fairness among the owners of jobs.
const (
	FairnessNone  RunnerFairness = "None"
	FairnessOwner RunnerFairness = "Owner"
)

// RunnerPod runs each job in a pod of a batch/v1 Job. An init container copies the runner's program out of runnerImage, so
// that the job's image can be any.
type RunnerPod struct {
	// RunnerImage holds the program forgejo-runner. Give it by digest: what a tag such as :12 stands for may change from one
	// job to the next, without anything here being changed. Default: the operator's, in the ClusterProviderConfig. A change
	// drains the runners that are out, but for those with a job in hand.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	RunnerImage string `json:"runnerImage,omitempty"`

	// JobContainer is the container of the template that the runner runs in. Default job. A change drains the runners that are
	// out, but for those with a job in hand.
	// +optional
	// +kubebuilder:default=job
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	JobContainer string `json:"jobContainer"`

	// Template of the pod, a PodTemplateSpec: image, resources, sidecars, volumes, scheduling. What is set in it stays;
	// added are the init container, the program and the credential, restartPolicy Never, a grace period of 0 and no token of
	// a service account where the template says nothing of them. It has to meet the Pod Security Standard that the job
	// namespace enforces, baseline where it says none. A change drains the runners that are out, but for those with a job in
	// hand.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Template runtime.RawExtension `json:"template"`
}

// RunnerVM runs each job in a KubeVirt VirtualMachine that boots a guest image prepared for it.
type RunnerVM struct {
	// CredentialsDisk is the name of the CDROM with the files url, uuid, token and label that the guest reads. It is its label,
	// too, if it has no more than 32 characters. Default forgejo-runner. A change drains the runners that are out, but for those
	// with a job in hand.
	// +optional
	// +kubebuilder:default=forgejo-runner
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	CredentialsDisk string `json:"credentialsDisk"`

	// Template of the virtual machine: metadata and spec of a kubevirt.io/v1 VirtualMachine. What is set in it stays; added
	// are the credentials' CDROM, runStrategy Once and a grace period of 0 where the template says nothing of them. A change
	// drains the runners that are out, but for those with a job in hand.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Template runtime.RawExtension `json:"template"`
}

// RunnerPoolPhase sums up a pool in a word.
// +kubebuilder:validation:Enum=Pending;Ready;BackingOff;Unreachable;Suspended;Deleting;DeletionBlocked
type RunnerPoolPhase string

// Phases of a runner pool.
const (
	// RunnerPoolPending was not polled yet, or cannot be: the condition says why.
	RunnerPoolPending RunnerPoolPhase = "Pending"
	// RunnerPoolReady watches the queue and makes runners.
	RunnerPoolReady RunnerPoolPhase = "Ready"
	// RunnerPoolBackingOff makes no runners for a while, because the last ones failed without a job.
	RunnerPoolBackingOff RunnerPoolPhase = "BackingOff"
	// RunnerPoolUnreachable has a server that does not answer as it should.
	RunnerPoolUnreachable RunnerPoolPhase = "Unreachable"
	// RunnerPoolSuspended makes no runners because the claim says so.
	RunnerPoolSuspended RunnerPoolPhase = "Suspended"
	// RunnerPoolDeleting is being deleted.
	RunnerPoolDeleting RunnerPoolPhase = "Deleting"
	// RunnerPoolDeletionBlocked is being deleted and waits for something.
	RunnerPoolDeletionBlocked RunnerPoolPhase = "DeletionBlocked"
)

// RunnerPoolStatus is what is true of a runner pool.
type RunnerPoolStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Phase sums up the pool in a word.
	// +optional
	Phase RunnerPoolPhase `json:"phase,omitempty"`

	// Message says what is wrong, or what the first waiting job waits for. Absent when all is well.
	// +optional
	Message string `json:"message,omitempty"`

	RunnerPoolObservation `json:",inline"`
}

// RunnerPoolObservation is what was seen of a pool's queue and runners at the last poll that changed it.
type RunnerPoolObservation struct {
	// Waiting jobs that this pool serves. A job that several pools serve counts for one of them.
	// +optional
	Waiting int32 `json:"waiting"`

	// Available runners can still take a job: they are starting, or wait for one.
	// +optional
	Available int32 `json:"available"`

	// Active runners have a job in hand.
	// +optional
	Active int32 `json:"active"`

	// Live runners are all that are not finished, the number that maxRunners limits.
	// +optional
	Live int32 `json:"live"`

	// Minimum is the minRunners that counts now, by the schedule.
	// +optional
	Minimum int32 `json:"minimum"`

	// ConsecutiveFailures counts tries that failed without a job since a runner got through: those of several runners that
	// were made at once, or before the first of them was known to have failed, are one. Each doubles the time until the next
	// runners are made, from two poll intervals up to 32.
	// +optional
	ConsecutiveFailures int32 `json:"consecutiveFailures"`

	// NextTryTime is when runners are made again. Absent when nothing holds them back.
	// +optional
	NextTryTime *metav1.Time `json:"nextTryTime,omitempty"`

	// LastPoll tells how the last look at the queue went.
	// +optional
	LastPoll *RunnerPoolPoll `json:"lastPoll,omitempty"`

	// Reasons why waiting jobs have no runner, at most ten, sorted.
	// +optional
	// +listType=atomic
	Reasons []string `json:"reasons,omitempty"`

	// Recent runners that ended, newest first, at most ten.
	// +optional
	// +listType=atomic
	Recent []EndedRunner `json:"recent,omitempty"`
}

// RunnerPoolPoll tells how a look at the queue went.
type RunnerPoolPoll struct {
	// Outcome of the last look.
	Outcome PollOutcome `json:"outcome"`
	// Since when looks have gone this way.
	Since metav1.Time `json:"since"`
	// Version of the server.
	// +optional
	Version string `json:"version,omitempty"`
	// Message says what went wrong and what to do.
	// +optional
	Message string `json:"message,omitempty"`
}

// PollOutcome is how a look at the queue went.
// +kubebuilder:validation:Enum=Succeeded;Failed
type PollOutcome string

// Outcomes of a look at the queue.
const (
	PollSucceeded PollOutcome = "Succeeded"
	PollFailed    PollOutcome = "Failed"
)

// An EndedRunner is a runner that ended.
type EndedRunner struct {
	// Name of the runner, its Job or VirtualMachine in the job namespace, and its registration.
	Name string `json:"name"`
	// Reason of its verdict: RunnerConsumed, StartupTimeout and others.
	Reason string `json:"reason"`
	// Time of its verdict.
	Time metav1.Time `json:"time"`
	// Message in a sentence.
	// +optional
	Message string `json:"message,omitempty"`
}

// RunnerPoolList is a list of runner pools.
//
// +kubebuilder:object:root=true
type RunnerPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RunnerPool `json:"items"`
}

func init() { SchemeBuilder.Register(&RunnerPool{}, &RunnerPoolList{}) }
