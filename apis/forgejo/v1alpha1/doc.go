// Package v1alpha1 has the kinds of provider-forgejo, group forgejo.steading.dev.
//
// A RunnerPool is a Runner, which watches the queue of a Forgejo server and makes a RunnerInstance for every job that it
// serves. All of them live in the namespace steading-system. Runners are composed by function-steading, RunnerInstances
// are made by their Runner; nobody writes either by hand, but deleting a RunnerInstance kills that runner.
//
// +kubebuilder:object:generate=true
// +groupName=forgejo.steading.dev
package v1alpha1
