// Package release deploys an environment's runtime with Helm, in process, as the environment's own deployer account.
//
// A Release's reconciler only looks and decides: each pass sees the records Helm keeps, the workloads and the operation in
// flight, and comes to a verdict (see verdict.go). What takes time runs in a goroutine of its own, at most one a release
// (operations.go), and wakes the reconciler when it is done. What a process that died left half done is repaired by the
// next.
//
// Charts have no power of their own: Helm acts as steading-deployer, which is bound in one namespace, and what a chart
// renders is checked and stamped before it is sent (stamp.go).
package release
