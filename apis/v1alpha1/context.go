package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Context is a cluster that a tenant's environments can be placed on: its address, the CA that proves it, a
// credential for it, and how many environments it takes. It lives in its tenant's namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ctx,categories=steading
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="USED",type="integer",JSONPath=".status.environments.used"
// +kubebuilder:printcolumn:name="FREE",type="integer",JSONPath=".status.environments.free"
// +kubebuilder:printcolumn:name="GUARDED",type="boolean",JSONPath=".status.guarded"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".status.version"
// +kubebuilder:printcolumn:name="SERVER",type="string",JSONPath=".spec.server",priority=1
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.message"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Context struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ContextSpec   `json:"spec"`
	Status ContextStatus `json:"status,omitempty"`
}

// ContextSpec says how the cluster is reached and how it is used.
//
// +kubebuilder:validation:XValidation:rule="!has(self.ingress) || has(self.zone)",message="ingress needs zone: the DNS zone under which exposed services get their names"
type ContextSpec struct {
	// Server is the API server's address, https://host:port, without a path. Loopback and link-local addresses are
	// refused unless the operator allows them. Redirects are not followed. It cannot be changed while environments are on
	// the context.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https://(\[[0-9a-fA-F:.]+\]|[^/?#@\s:\[\]]+)(:[0-9]{1,5})?/?$`
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getPort() == '' || (int(url(self).getPort()) >= 1 && int(url(self).getPort()) <= 65535)",message="the port of server is a number from 1 to 65535"
	Server string `json:"server"`

	// CABundle is the CA that signed the API server's certificate, as PEM, base64. The server is always verified by it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	CABundle []byte `json:"caBundle"`

	// Credentials for the cluster. While a new credential does not work, the last good one is kept.
	Credentials ContextCredentials `json:"credentials"`

	// MaxEnvironments is how many environments the context takes. Lowering it below what is there moves nothing; it
	// takes no more. Default 20.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	MaxEnvironments *int32 `json:"maxEnvironments,omitempty"`

	// Ingress says where exposed services are reached. Without it nothing is exposed on this context.
	// +optional
	Ingress *ContextIngress `json:"ingress,omitempty"`

	// Zone is the DNS zone under which exposed services get their names.
	// +optional
	// +kubebuilder:validation:MaxLength=180
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	Zone string `json:"zone,omitempty"`

	// Drain keeps what the context has and takes no more. Default false.
	// +optional
	Drain bool `json:"drain,omitempty"`
}

// ContextCredentials are exactly one way to a credential for a cluster.
//
// +kubebuilder:validation:XValidation:rule="[has(self.secretRef), has(self.externalSecret), has(self.age)].exists_one(x, x)",message="credentials needs exactly one of secretRef, externalSecret and age"
type ContextCredentials struct {
	// SecretRef names a Secret of the tenant's namespace with the key token, or the keys tls.crt and tls.key. A
	// kubeconfig is not accepted, since it can run programs and read files.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// ExternalSecret fetches the same keys from a store of the tenant's, through the External Secrets operator.
	// +optional
	ExternalSecret *ExternalCredential `json:"externalSecret,omitempty"`

	// Age is ciphertext to the platform's recipient, armored. It is safe to commit to git: what is in it is bound to
	// tenant, context, server and CA, and anything else is refused.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Age string `json:"age,omitempty"`
}

// ExternalCredential says where the External Secrets operator finds a credential.
type ExternalCredential struct {
	// StoreRef names a SecretStore of the tenant's namespace.
	StoreRef StoreReference `json:"storeRef"`
	// Key in the store.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Key string `json:"key"`
}

// StoreReference names a store of secrets.
type StoreReference struct {
	// Kind of the store. Only SecretStore, which is the tenant's own.
	// +kubebuilder:validation:Enum=SecretStore
	// +kubebuilder:default=SecretStore
	Kind string `json:"kind,omitempty"`
	// Name of the store.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// ContextIngress says where exposed services are reached.
//
// +kubebuilder:validation:XValidation:rule="has(self.className) != has(self.gatewayRef)",message="ingress needs exactly one of className and gatewayRef"
type ContextIngress struct {
	// Addresses that the names of exposed services point to.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="addresses are IP addresses"
	// +listType=set
	Addresses []string `json:"addresses"`

	// ClassName of the Ingresses that are made.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ClassName string `json:"className,omitempty"`

	// GatewayRef names a Gateway; HTTPRoutes are made instead of Ingresses.
	// +optional
	GatewayRef *GatewayReference `json:"gatewayRef,omitempty"`
}

// GatewayReference names a Gateway of the Gateway API on the context's cluster.
type GatewayReference struct {
	// Namespace of the Gateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace"`
	// Name of the Gateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// ContextPhase sums up a context in a word.
// +kubebuilder:validation:Enum=Pending;Running;Unreachable;Draining;Deleting;DeletionBlocked
type ContextPhase string

// Phases of a context.
const (
	ContextPending         ContextPhase = "Pending"
	ContextRunning         ContextPhase = "Running"
	ContextUnreachable     ContextPhase = "Unreachable"
	ContextDraining        ContextPhase = "Draining"
	ContextDeleting        ContextPhase = "Deleting"
	ContextDeletionBlocked ContextPhase = "DeletionBlocked"
)

// ContextStatus is what is true of a context.
type ContextStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Phase sums up the context in a word.
	// +optional
	Phase ContextPhase `json:"phase,omitempty"`

	// Message says what is wrong. Absent when all is well.
	// +optional
	Message string `json:"message,omitempty"`

	// Version of the cluster's API server.
	// +optional
	Version string `json:"version,omitempty"`

	// Environments that are on the context.
	// +optional
	Environments *ContextUse `json:"environments,omitempty"`

	// Guarded is whether the guard policies are installed on the cluster.
	// +optional
	Guarded *bool `json:"guarded,omitempty"`
}

// ContextUse is how full a context is.
type ContextUse struct {
	// Used places, those of environments being deleted included.
	Used int32 `json:"used"`
	// Free places.
	Free int32 `json:"free"`
}

// ContextList is a list of contexts.
//
// +kubebuilder:object:root=true
type ContextList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Context `json:"items"`
}

func init() { SchemeBuilder.Register(&Context{}, &ContextList{}) }
