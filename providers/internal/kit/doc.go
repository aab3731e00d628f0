// Package kit is what Steading's providers share: how their binaries are wired, how what they make outside is told
// from what others made, in which order things are deleted, and how the owner of a claim learns of it.
//
// A provider's main parses [Flags] and runs a [Provider], which makes a manager and hands [Options] to the Setup function of
// each of its controllers. A controller of a managed resource is built from [Watch] and [Reconciler], which add to Crossplane's
// managed reconciler what decision 7 of the architecture asks for: deterministic names, errors cleaned of what changes
// from run to run, polling by readiness, and [After], with which an external client says when to look again.
//
// Outside objects carry a [Stamp]. [Ours] is asked before one is changed or deleted.
//
// Elders wait for [Youngers] and are woken by [Gone]. While they wait, a [ClaimReporter] says so on the claim.
package kit
