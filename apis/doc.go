// Package apis holds the vocabulary of Steading: the Go types of every kind and the names and defaults derived from
// them. It does no I/O and imports nothing else of this module.
//
// [github.com/steading-dev/steading/apis/v1alpha1] has what people write: Tenant, Environment, Context.
// [github.com/steading-dev/steading/apis/runtime/v1alpha1] has the managed resources of provider-runtime.
// [github.com/steading-dev/steading/apis/names] derives every name.
package apis
