package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A Ledger holds what a tenant was granted, one entry a Placement. It has the tenant's name. Admission writes here
// first, with the resourceVersion it read, so that of two writers one loses and decides again.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={steading,runtime}
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Ledger struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Entries by Placement UID.
	// +optional
	// +listType=map
	// +listMapKey=uid
	Entries []LedgerEntry `json:"entries,omitempty"`
}

// A LedgerEntry is one grant.
type LedgerEntry struct {
	// UID of the Placement.
	UID types.UID `json:"uid"`
	// Placement by name.
	Placement string `json:"placement"`
	// Grant it holds.
	Grant Grant `json:"grant"`
	// Reserved counts in the tenant's total in place of the grant's caps, while more than those is or may be in use: they were
	// lowered, and what the namespace had before is not known to be given back. Absent: the caps count.
	// +optional
	Reserved *steading.Resources `json:"reserved,omitempty"`
	// Request that the grant answers. A Placement that asks for the same again is not decided again.
	// +optional
	Request *Request `json:"request,omitempty"`
}

// LedgerList is a list of ledgers.
//
// +kubebuilder:object:root=true
type LedgerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Ledger `json:"items"`
}

func init() { SchemeBuilder.Register(&Ledger{}, &LedgerList{}) }
