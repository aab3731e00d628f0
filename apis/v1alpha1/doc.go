// Package v1alpha1 has the claims of group steading.dev: what a person writes and reads.
//
// Each claim kind K is bound by Crossplane to a cluster-scoped composite of kind XK with the same spec and status.
// The CompositeResourceDefinitions in xrds/ are generated from these types.
//
// +kubebuilder:object:generate=true
// +groupName=steading.dev
package v1alpha1
