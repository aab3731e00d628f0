package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Tenant is a customer of the platform: who owns it, how much it may use, and what becomes of it when it is deleted.
// It lives in the namespace steading-system and gets a namespace of its own, tenant-<name>, in which its owners apply
// Contexts and Environments. Its name is at most 20 lower-case letters and digits, without hyphens.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=steading
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="NAMESPACE",type="string",JSONPath=".status.namespace"
// +kubebuilder:printcolumn:name="ENVIRONMENTS",type="integer",JSONPath=".status.environments.total"
// +kubebuilder:printcolumn:name="LIMIT",type="integer",JSONPath=".spec.quota.maxEnvironments"
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.message"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TenantSpec   `json:"spec"`
	Status TenantStatus `json:"status,omitempty"`
}

// TenantSpec says who the tenant is and what it may use.
type TenantSpec struct {
	// DisplayName is the name people read. It has no effect on anything else.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DisplayName string `json:"displayName,omitempty"`

	// Owners are the RBAC subjects that may write claims and their Secrets in the tenant's namespace, and read, exec
	// into and port-forward to what runs in its environments. A change reaches every environment within seconds.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Owners []Subject `json:"owners,omitempty"`

	// Quota is what the tenant may use. Lowering it below what is in use stops nothing that runs; it refuses the next
	// environment and the next larger size. What runs still gets new versions.
	// +optional
	// +kubebuilder:default={}
	Quota Quota `json:"quota,omitempty"`

	// Registry holds the tenant's own runtime images, <prefix>/<tenant>-devops:<version>. Without it environments run
	// the platform's canonical image.
	// +optional
	Registry *Registry `json:"registry,omitempty"`

	// PlatformCluster says whether environments may be placed on the platform's own cluster: Fallback (only while the
	// tenant has no Context), Allowed or Denied. A change binds later placements only. Default Fallback.
	// +optional
	// +kubebuilder:default=Fallback
	PlatformCluster PlatformClusterPolicy `json:"platformCluster,omitempty"`

	// Docker says whether environments may ask for the privileged docker sidecar: Denied or Allowed. A privileged
	// container can take over its node. Default Denied.
	// +optional
	// +kubebuilder:default=Denied
	Docker DockerPolicy `json:"docker,omitempty"`

	// Operations marks the platform's own tenant. Its environments report when the canonical image stands in for an
	// image that was published under the platform's declared name. Default false.
	// +optional
	Operations bool `json:"operations,omitempty"`

	// DeletionPolicy says what deleting the Tenant does. Retain: deletion waits until its environments and contexts
	// are gone, and keeps the namespace. Delete: they are deleted, and the namespace with them. Default Retain.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// A Subject of RBAC that owns a tenant.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'ServiceAccount') == (has(self.__namespace__) && size(self.__namespace__) > 0)",message="a ServiceAccount needs the namespace that it is in; users and groups are in none"
// +kubebuilder:validation:XValidation:rule="self.kind != 'ServiceAccount' || !format.dns1123Subdomain().validate(self.name).hasValue()",message="no ServiceAccount can have that name: it is lower-case letters, digits, hyphens and dots"
type Subject struct {
	// Kind is User, Group or ServiceAccount.
	// +kubebuilder:validation:Enum=User;Group;ServiceAccount
	Kind string `json:"kind"`

	// Name of the user, group or service account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="system users and groups cannot own a tenant"
	Name string `json:"name"`

	// Namespace of a ServiceAccount. Not set for users and groups.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}

// RBAC returns s as rbac.authorization.k8s.io wants it.
func (s Subject) RBAC() rbacv1.Subject {
	if s.Kind == rbacv1.ServiceAccountKind {
		return rbacv1.Subject{Kind: s.Kind, Name: s.Name, Namespace: s.Namespace}
	}
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: s.Kind, Name: s.Name}
}

// Quota is what a tenant may use.
type Quota struct {
	// MaxEnvironments is how many environments of every type may exist, those being deleted left out. 0 blocks
	// creation. Default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	MaxEnvironments *int32 `json:"maxEnvironments,omitempty"`

	// PerEnvironment is the largest size of one environment, and the size of one that names none.
	// Default 16 CPU, 36864Mi memory, 72Gi storage.
	// +optional
	// +kubebuilder:default={cpu: "16", memory: "36864Mi", storage: "72Gi"}
	// +kubebuilder:validation:XValidation:rule="[self.cpu, self.memory, self.storage].all(q, string(q).matches('^[0-9]{1,30}([.][0-9]{1,9})?([KMGTPE]i|[numkMGTPE])?$') && quantity(string(q)).compareTo(quantity('1E')) < 0)",message="an amount is zero or more and below 1E, in digits and a unit, without sign and exponent: 8, 500m, 20Gi"
	PerEnvironment *Resources `json:"perEnvironment,omitempty"`

	// Total is the sum of the sizes of all environments, those being deleted included.
	// Default 160 CPU, 368640Mi memory, 720Gi storage.
	// +optional
	// +kubebuilder:default={cpu: "160", memory: "368640Mi", storage: "720Gi"}
	// +kubebuilder:validation:XValidation:rule="[self.cpu, self.memory, self.storage].all(q, string(q).matches('^[0-9]{1,30}([.][0-9]{1,9})?([KMGTPE]i|[numkMGTPE])?$') && quantity(string(q)).compareTo(quantity('1E')) < 0)",message="an amount is zero or more and below 1E, in digits and a unit, without sign and exponent: 8, 500m, 20Gi"
	Total *Resources `json:"total,omitempty"`
}

// A Registry of OCI images.
type Registry struct {
	// Prefix is the registry's host and path, without scheme or tag: ghcr.io/acme.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]+)?(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)*$')",message="prefix is host[:port]/path, the path in lower case and without scheme, tag, digest or trailing slash, e.g. ghcr.io/acme"
	Prefix string `json:"prefix"`

	// PullSecretRef names a Secret of type kubernetes.io/dockerconfigjson in steading-system. It is copied into
	// environments that need it, and sent to its own host only.
	// +optional
	PullSecretRef *LocalSecretReference `json:"pullSecretRef,omitempty"`
}

// LocalSecretReference names a Secret in a namespace that is known from where the reference stands.
type LocalSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// PlatformClusterPolicy says whether a tenant may use the platform's own cluster.
// +kubebuilder:validation:Enum=Fallback;Allowed;Denied
type PlatformClusterPolicy string

// Policies for the platform's own cluster.
const (
	PlatformClusterFallback PlatformClusterPolicy = "Fallback"
	PlatformClusterAllowed  PlatformClusterPolicy = "Allowed"
	PlatformClusterDenied   PlatformClusterPolicy = "Denied"
)

// DockerPolicy says whether a tenant's environments may run the privileged docker sidecar.
// +kubebuilder:validation:Enum=Denied;Allowed
type DockerPolicy string

// Policies for the docker sidecar.
const (
	DockerDenied  DockerPolicy = "Denied"
	DockerAllowed DockerPolicy = "Allowed"
)

// DeletionPolicy says what deleting a tenant does.
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

// Deletion policies of a tenant.
const (
	DeletionRetain DeletionPolicy = "Retain"
	DeletionDelete DeletionPolicy = "Delete"
)

// TenantPhase sums up a tenant in a word.
// +kubebuilder:validation:Enum=Pending;Ready;Deleting;DeletionBlocked
type TenantPhase string

// Phases of a tenant.
const (
	TenantPending         TenantPhase = "Pending"
	TenantReady           TenantPhase = "Ready"
	TenantDeleting        TenantPhase = "Deleting"
	TenantDeletionBlocked TenantPhase = "DeletionBlocked"
)

// TenantStatus is what is true of a tenant.
type TenantStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Phase sums up the tenant in a word.
	// +optional
	Phase TenantPhase `json:"phase,omitempty"`

	// Message says what the tenant waits for or what is wrong, empty when nothing is.
	// +optional
	Message string `json:"message,omitempty"`

	// Namespace is where the tenant's owners write their claims.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Environments counts the tenant's environments.
	// +optional
	Environments *EnvironmentCounts `json:"environments,omitempty"`

	// Usage is what admission itself counts with.
	// +optional
	Usage *Usage `json:"usage,omitempty"`

	// RecentUsageEvents are the tenant's last twenty usage events, newest first.
	// +optional
	// +listType=atomic
	RecentUsageEvents []UsageRecord `json:"recentUsageEvents,omitempty"`
}

// EnvironmentCounts counts a tenant's environments.
type EnvironmentCounts struct {
	// Total is what the environment limit counts: all but those being deleted.
	Total int32 `json:"total"`
	// Running have a grant and are not stopped.
	Running int32 `json:"running"`
	// Stopped have a grant and are scaled to zero. They still count.
	Stopped int32 `json:"stopped"`
	// Refused have no grant.
	Refused int32 `json:"refused"`
	// TearingDown are being deleted: left out of the limit, counted in the totals.
	TearingDown int32 `json:"tearingDown"`
}

// Usage of a tenant's total budget.
type Usage struct {
	// CPU in cores.
	CPU UsageOf `json:"cpu"`
	// Memory in bytes.
	Memory UsageOf `json:"memory"`
	// Storage in bytes.
	Storage UsageOf `json:"storage"`
}

// UsageOf one resource.
type UsageOf struct {
	// Projected is the sum of the granted sizes, those being deleted included.
	Projected resource.Quantity `json:"projected"`
	// Limit is the tenant's total.
	Limit resource.Quantity `json:"limit"`
	// Free is the limit less what is projected, never below zero.
	Free resource.Quantity `json:"free"`
}

// UsageRecord is a usage event as a tenant reads it.
type UsageRecord struct {
	// Time of the transition.
	Time metav1.Time `json:"time"`
	// Environment it happened to.
	Environment string `json:"environment"`
	// Transition is Provisioned, Started, Stopped or Deleted.
	Transition string `json:"transition"`
	// Version that ran.
	// +optional
	Version string `json:"version,omitempty"`
	// Context it ran on.
	// +optional
	Context string `json:"context,omitempty"`
}

// TenantList is a list of tenants.
//
// +kubebuilder:object:root=true
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Tenant `json:"items"`
}

func init() { SchemeBuilder.Register(&Tenant{}, &TenantList{}) }
