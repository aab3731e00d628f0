// Package v1alpha1 has the managed resources of provider-runtime, group runtime.steading.dev.
//
// A Tenant is a Home. An Environment is a Placement, then a Boundary, then a Release. All of them live in the
// namespace steading-system and are composed by function-steading; nobody writes them by hand.
//
// +kubebuilder:object:generate=true
// +groupName=runtime.steading.dev
package v1alpha1
