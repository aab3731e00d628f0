package v1alpha1

import (
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A Runner is a pool of runners: it watches the queue of a Forgejo server, and for every job that it serves makes a
// RunnerInstance. It is kept until all of them are gone.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,steading,forgejo}
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="WAITING",type="integer",JSONPath=".status.atProvider.waiting"
// +kubebuilder:printcolumn:name="AVAILABLE",type="integer",JSONPath=".status.atProvider.available"
// +kubebuilder:printcolumn:name="ACTIVE",type="integer",JSONPath=".status.atProvider.active"
// +kubebuilder:printcolumn:name="LIVE",type="integer",JSONPath=".status.atProvider.live"
// +kubebuilder:printcolumn:name="MAX",type="integer",JSONPath=".spec.forProvider.settings.maxRunners"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Runner struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   RunnerSpec   `json:"spec"`
	Status RunnerStatus `json:"status,omitempty"`
}

// RunnerSpec is the desired state of a Runner.
type RunnerSpec struct {
	// ForProvider is what the pool's claim says.
	ForProvider RunnerParameters `json:"forProvider"`
}

// RunnerParameters is what the pool's claim says.
type RunnerParameters struct {
	// Identity of the tenant; the UID is the pool's composite's.
	Identity runtimev1.Identity `json:"identity"`
	// Claim that the Runner serves. The token's Secret is read from the claim's namespace.
	Claim runtimev1.ClaimReference `json:"claim"`
	// Settings of the pool.
	Settings steading.RunnerPoolSpec `json:"settings"`
}

// RunnerStatus is the observed state of a Runner.
type RunnerStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// AtProvider is what was seen.
	// +optional
	AtProvider steading.RunnerPoolObservation `json:"atProvider,omitempty"`

	// Counted is how many verdicts consecutiveFailures takes into account, ever. Of two tellings the one that counted more is
	// the later.
	// +optional
	Counted int64 `json:"counted,omitempty"`

	// Raised is what counted was when consecutiveFailures last grew. Runners that were made before that are of the same try,
	// and do not raise it again.
	// +optional
	Raised int64 `json:"raised,omitempty"`

	// Namespaces that runners of the pool were made in, the present jobNamespace among them, sorted. One that is not that any
	// more stays until nothing of the pool is left there.
	// +optional
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
}

// GetCondition of a type.
func (r *Runner) GetCondition(t xpv2.ConditionType) xpv2.Condition { return r.Status.GetCondition(t) }

// SetConditions replaces conditions by type.
func (r *Runner) SetConditions(c ...xpv2.Condition) { r.Status.SetConditions(c...) }

// JobNamespaces are the present one and those in which something of the pool may be left, sorted.
func (r *Runner) JobNamespaces() []string {
	all := append(slices.Clone(r.Status.Namespaces), r.Spec.ForProvider.Settings.JobNamespace)
	slices.Sort(all)
	return slices.Compact(all)
}

// RunnerList is a list of runners.
//
// +kubebuilder:object:root=true
type RunnerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Runner `json:"items"`
}

func init() { SchemeBuilder.Register(&Runner{}, &RunnerList{}) }
