package v1alpha1

import (
	"k8s.io/apimachinery/pkg/types"
)

// ClaimReference names the claim that a managed resource serves. Events go to it.
type ClaimReference struct {
	// Namespace of the claim.
	Namespace string `json:"namespace"`
	// Name of the claim.
	Name string `json:"name"`
}

// Identity says whose something made outside is. It is stamped on it as labels and annotations, and nothing that
// carries another identity, or none, is ever changed or deleted.
type Identity struct {
	// Tenant by name.
	Tenant string `json:"tenant"`
	// Environment by name. Empty for what belongs to the tenant as a whole.
	// +optional
	Environment string `json:"environment,omitempty"`
	// UID of the composite.
	UID types.UID `json:"uid"`
}
