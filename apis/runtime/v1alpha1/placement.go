package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A Placement asks admission for a place and a size, and holds the answer: what was granted, and why what is asked for
// now was refused. It is the first part of an environment to be made and the last to go.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,steading,runtime}
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status",priority=1
// +kubebuilder:printcolumn:name="CONTEXT",type="string",JSONPath=".status.atProvider.grant.context"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".status.atProvider.grant.version"
// +kubebuilder:printcolumn:name="REFUSED",type="string",JSONPath=".status.atProvider.refusal.reason"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Placement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PlacementSpec   `json:"spec"`
	Status PlacementStatus `json:"status,omitempty"`
}

// PlacementSpec is the desired state of a Placement.
type PlacementSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// ForProvider is what the environment's claim asks for.
	ForProvider PlacementParameters `json:"forProvider"`
}

// PlacementParameters is what the environment's claim asks for.
type PlacementParameters struct {
	// Identity of the environment.
	Identity Identity `json:"identity"`
	// Claim that the Placement serves.
	Claim ClaimReference `json:"claim"`
	// Request to decide on.
	Request Request `json:"request"`
}

// A Request is the part of an environment's spec that admission decides on.
type Request struct {
	// Type of the environment.
	Type steading.EnvironmentType `json:"type"`
	// Version of the runtime. Empty: a record, which is counted and granted no version.
	// +optional
	Version string `json:"version,omitempty"`
	// Stopped environments count in full; only the tenant's counts by state depend on this.
	// +optional
	Stopped bool `json:"stopped,omitempty"`
	// Context asked for by name. Empty: admission chooses.
	// +optional
	Context string `json:"context,omitempty"`
	// Size asked for. Absent: the tenant's quota.perEnvironment.
	// +optional
	Size *steading.Resources `json:"size,omitempty"`
	// Docker asks for the docker sidecar.
	// +optional
	Docker bool `json:"docker,omitempty"`
	// Components to deploy beside the runtime. In a Ledger they are left out: the grant tells what was asked for.
	// +optional
	// +listType=map
	// +listMapKey=name
	Components []ComponentRequest `json:"components,omitempty"`
	// DryRun decides without granting: the decision is in status.atProvider.plan.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// A ComponentRequest is the part of a component's spec that admission decides on.
type ComponentRequest struct {
	// Name of the component.
	Name string `json:"name"`
	// Chart by name.
	Chart string `json:"chart"`
	// Version of the chart.
	Version string `json:"version"`
	// Values given in the claim, on which it depends what the chart needs.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
	// MoreValues is whether Secrets or ConfigMaps have more of them, which admission does not read. What the chart needs
	// then may not be told, and is not counted.
	// +optional
	MoreValues bool `json:"moreValues,omitempty"`
}

// CanonicalValues are the values as JSON that is written the same however they were given. None are {}.
func (r ComponentRequest) CanonicalValues() string {
	values := map[string]any{}
	if r.Values != nil {
		// The API server takes objects only.
		_ = json.Unmarshal(r.Values.Raw, &values)
	}
	raw, err := json.Marshal(values)
	if err != nil || values == nil {
		return "{}"
	}
	return string(raw)
}

// GrantedBy reports whether a grant answers the request.
func (r ComponentRequest) GrantedBy(g GrantedComponent) bool {
	return r.pinnedBy(g) && g.Values == r.valuesDigest()
}

// pinnedBy reports whether a grant is for the same version of the same chart.
func (r ComponentRequest) pinnedBy(g GrantedComponent) bool {
	return r.Name == g.Name && r.Chart == g.ChartName && r.Version == g.Chart.Version
}

// Pin is the chart that a grant holds for the request, be it for other values, or nil.
func (r ComponentRequest) Pin(g *GrantedComponent) *Chart {
	if g == nil || !r.pinnedBy(*g) {
		return nil
	}
	return &g.Chart
}

// Granted is the grant of the request with its chart pinned.
func (r ComponentRequest) Granted(c Chart) GrantedComponent {
	return GrantedComponent{Name: r.Name, ChartName: r.Chart, Values: r.valuesDigest(), Chart: c}
}

func (r ComponentRequest) valuesDigest() string {
	sum := sha256.Sum256([]byte(r.CanonicalValues()))
	return hex.EncodeToString(sum[:16])
}

// PlacementStatus is the observed state of a Placement.
type PlacementStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what admission decided.
	// +optional
	AtProvider PlacementObservation `json:"atProvider,omitempty"`
}

// PlacementObservation is what admission decided.
type PlacementObservation struct {
	// DecidedGeneration is the generation of the Placement that the last decision was about.
	// +optional
	DecidedGeneration int64 `json:"decidedGeneration,omitempty"`
	// Grant that holds. A refusal leaves it as it was.
	// +optional
	Grant *Grant `json:"grant,omitempty"`
	// Refusal of what is asked for now. Absent when all of it was granted.
	// +optional
	Refusal *Refusal `json:"refusal,omitempty"`
	// Plan says, for a dry run, what would happen, in order.
	// +optional
	// +listType=atomic
	Plan []string `json:"plan,omitempty"`
	// Tenant has the tenant's settings that the environment's other parts need.
	// +optional
	Tenant *TenantSettings `json:"tenant,omitempty"`
	// Exposure of the granted context. Absent when it has no ingress or no zone.
	// +optional
	Exposure *Exposure `json:"exposure,omitempty"`
}

// A Grant is what an environment may have. It is sticky field by field: nothing that was granted is taken back.
type Grant struct {
	// Context to run on, or "platform". Empty for records, which run nowhere.
	// +optional
	Context string `json:"context,omitempty"`
	// Reason for the context.
	// +optional
	Reason steading.PlacementReason `json:"reason,omitempty"`
	// Caps are the size. Absent for records.
	// +optional
	Caps *steading.Resources `json:"caps,omitempty"`
	// Version of the runtime.
	// +optional
	Version string `json:"version,omitempty"`
	// Docker is whether the docker sidecar was granted.
	// +optional
	Docker bool `json:"docker,omitempty"`
	// Chart to deploy.
	// +optional
	Chart *Chart `json:"chart,omitempty"`
	// Components to deploy beside the runtime.
	// +optional
	// +listType=map
	// +listMapKey=name
	Components []GrantedComponent `json:"components,omitempty"`
}

// Component of the grant by name, or nil.
func (g *Grant) Component(name string) *GrantedComponent {
	if g == nil {
		return nil
	}
	for i := range g.Components {
		if g.Components[i].Name == name {
			return &g.Components[i]
		}
	}
	return nil
}

// A GrantedComponent is a component that was admitted.
type GrantedComponent struct {
	// Name of the component.
	Name string `json:"name"`
	// ChartName is the chart's name as the claim has it.
	ChartName string `json:"chartName"`
	// Values is a digest of the claim's values that were admitted. Others are admitted again.
	Values string `json:"values"`
	// Chart to deploy.
	Chart Chart `json:"chart"`
}

// A Chart is a Helm chart in an OCI registry, pinned.
type Chart struct {
	// Repository without scheme and tag: ghcr.io/steading-dev/charts/runtime.
	Repository string `json:"repository"`
	// Version of the chart.
	Version string `json:"version"`
	// Digest of the chart's manifest: sha256:...
	Digest string `json:"digest"`
}

// A Refusal says why a request was not granted.
type Refusal struct {
	// Reason in a word, one of the reasons of the Admitted and Placed conditions.
	Reason string `json:"reason"`
	// Message with the numbers and what to do.
	Message string `json:"message"`
	// Placing is whether the request failed for want of a context, rather than of quota.
	// +optional
	Placing bool `json:"placing,omitempty"`
}

// TenantSettings are the tenant's settings that an environment's other parts need.
type TenantSettings struct {
	// Owners of the tenant.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Owners []steading.Subject `json:"owners,omitempty"`
	// Registry of the tenant's images.
	// +optional
	Registry *steading.Registry `json:"registry,omitempty"`
	// Operations marks the platform's own tenant.
	// +optional
	Operations bool `json:"operations,omitempty"`
}

// PlacementList is a list of placements.
//
// +kubebuilder:object:root=true
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Placement `json:"items"`
}

func init() { SchemeBuilder.Register(&Placement{}, &PlacementList{}) }
