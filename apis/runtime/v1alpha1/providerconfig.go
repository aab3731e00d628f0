package v1alpha1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// ProviderConfigSpec is what the operator sets for the whole platform.
type ProviderConfigSpec struct {
	// RuntimeChart is the chart that environments are deployed from. A change is taken up by the next admitted version
	// or size of each environment, never by one that just runs.
	RuntimeChart ChartSource `json:"runtimeChart"`

	// CanonicalImage is the platform's own runtime image, without tag, used when a tenant has none of its own:
	// ghcr.io/steading-dev/devops.
	// +kubebuilder:validation:MinLength=1
	CanonicalImage string `json:"canonicalImage"`

	// PlatformTenant is the name that the platform's own tenant, the one with operations: true, publishes its image under
	// when it is not its own: <registry prefix>/<platformTenant>-devops. When the canonical image stands in for that tenant
	// and an image exists under this name, status.image of its environments says so. A change is taken up by the next
	// version of each environment.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]{1,20}$`
	PlatformTenant string `json:"platformTenant,omitempty"`

	// PullSecretRef names a Secret of type kubernetes.io/dockerconfigjson in steading-system that can read the chart and
	// the canonical image.
	// +optional
	PullSecretRef *steading.LocalSecretReference `json:"pullSecretRef,omitempty"`

	// InsecureRegistries are registry hosts, with port, that are spoken to by plain HTTP. Meant for a registry on the
	// loopback address.
	// +optional
	// +listType=set
	InsecureRegistries []string `json:"insecureRegistries,omitempty"`

	// PlatformCluster says how the platform's own cluster is used by environments.
	// +optional
	PlatformCluster *PlatformCluster `json:"platformCluster,omitempty"`

	// Certificates says who issues the certificates of exposed services. Without it they have none.
	// +optional
	Certificates *Certificates `json:"certificates,omitempty"`

	// AllowedTargets are CIDRs of loopback, link-local or control plane addresses that contexts may point to all the
	// same. Meant for a target on the same machine.
	// +optional
	// +listType=set
	AllowedTargets []string `json:"allowedTargets,omitempty"`

	// Components are the repositories that charts of components come from, in the order in which they are asked. Without
	// any, environments have no components. A repository that is removed stops nothing that runs from it.
	// +optional
	// +listType=map
	// +listMapKey=prefix
	Components []ComponentRepository `json:"components,omitempty"`
}

// Certificates says who issues the certificates of exposed services.
type Certificates struct {
	// IssuerRef names cert-manager's issuer. Certificates are made in namespace steading-edge of the control plane.
	IssuerRef IssuerReference `json:"issuerRef"`
}

// IssuerReference names an issuer of cert-manager.
type IssuerReference struct {
	// Kind is ClusterIssuer or Issuer. Default ClusterIssuer.
	// +optional
	// +kubebuilder:default=ClusterIssuer
	// +kubebuilder:validation:Enum=ClusterIssuer;Issuer
	Kind string `json:"kind,omitempty"`
	// Name of the issuer.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// A ComponentRepository is a path in an OCI registry whose charts all tenants may use.
type ComponentRepository struct {
	// Prefix of the repository, without scheme: ghcr.io/steading-dev/charts.
	// +kubebuilder:validation:MinLength=1
	Prefix string `json:"prefix"`
}

// A ChartSource is a Helm chart in an OCI registry.
type ChartSource struct {
	// Repository without scheme and tag: ghcr.io/steading-dev/charts/runtime.
	// +kubebuilder:validation:MinLength=1
	Repository string `json:"repository"`
	// Version of the chart, exactly. It is resolved to a digest once an admitted version.
	// +kubebuilder:validation:MinLength=1
	Version string `json:"version"`
}

// PlatformCluster says how the platform's own cluster is used by environments.
type PlatformCluster struct {
	// MaxEnvironments on the platform's own cluster, all tenants together counted by tenant. Default: no limit but the
	// tenant's own.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxEnvironments *int32 `json:"maxEnvironments,omitempty"`

	// Exposure of environments on the platform's own cluster. Absent: they are not exposed.
	// +optional
	Exposure *Exposure `json:"exposure,omitempty"`
}

// ProviderConfigStatus is the status of a ProviderConfig.
type ProviderConfigStatus struct {
	xpv2.ProviderConfigStatus `json:",inline"`
}

// A ProviderConfig configures provider-runtime for managed resources of its namespace that name it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,provider,steading,runtime}
// +kubebuilder:printcolumn:name="CHART",type="string",JSONPath=".spec.runtimeChart.version"
// +kubebuilder:printcolumn:name="USERS",type="integer",JSONPath=".status.users"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type ProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProviderConfigSpec   `json:"spec"`
	Status ProviderConfigStatus `json:"status,omitempty"`
}

// ProviderConfigList is a list of provider configs.
//
// +kubebuilder:object:root=true
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderConfig `json:"items"`
}

// A ClusterProviderConfig configures provider-runtime for the whole platform. Steading's managed resources use the one
// called default.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,provider,steading,runtime}
// +kubebuilder:printcolumn:name="CHART",type="string",JSONPath=".spec.runtimeChart.version"
// +kubebuilder:printcolumn:name="USERS",type="integer",JSONPath=".status.users"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type ClusterProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProviderConfigSpec   `json:"spec"`
	Status ProviderConfigStatus `json:"status,omitempty"`
}

// ClusterProviderConfigList is a list of cluster provider configs.
//
// +kubebuilder:object:root=true
type ClusterProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterProviderConfig `json:"items"`
}

// A ProviderConfigUsage says that a managed resource uses a provider config, which is kept until none does.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,provider,runtime}
// +kubebuilder:printcolumn:name="CONFIG",type="string",JSONPath=".providerConfigRef.name"
// +kubebuilder:printcolumn:name="KIND",type="string",JSONPath=".resourceRef.kind"
// +kubebuilder:printcolumn:name="RESOURCE",type="string",JSONPath=".resourceRef.name"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type ProviderConfigUsage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	xpv2.TypedProviderConfigUsage `json:",inline"`
}

// ProviderConfigUsageList is a list of provider config usages.
//
// +kubebuilder:object:root=true
type ProviderConfigUsageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderConfigUsage `json:"items"`
}

func init() {
	SchemeBuilder.Register(&ProviderConfig{}, &ProviderConfigList{}, &ClusterProviderConfig{}, &ClusterProviderConfigList{},
		&ProviderConfigUsage{}, &ProviderConfigUsageList{})
}
