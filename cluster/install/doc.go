// Package install holds what Steading needs on a control plane besides its
// packages: accounts, their power, and the admission policies that say what RBAC
// cannot. It is plain YAML below base, applied in the order of the files' names.
// How Crossplane runs the packages is below runtimes, what watches them below
// monitoring. Kustomize builds these folders; the chart, which is this folder,
// installs the same files.
//
// The part that clusters of contexts need too is told by [Targets].
//
// A policy is a file, 50-refuse-<what>.yaml, of a ValidatingAdmissionPolicy and
// its binding. Who asks is told by name, in variables that are the same in every
// policy: the operators (a group), Crossplane, the provider, and Kubernetes' own
// controllers. No policy asks RBAC: Argo CD may do everything there, and applies
// what tenants write.
package install
