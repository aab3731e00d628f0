// Package cluster keeps the target cluster behind a Context: which credential reaches it, whether it is reached, and the
// policies that guard it.
//
// Three things are kept apart. An [Endpoint] is all that it takes to reach a cluster: server, CA, credential, and the
// [address.Policy] that says which addresses may be dialled. The claim offers one; the last one that was proved is kept in a Secret
// of steading-system and is what environments are reached by. A line is held to each of the two, in the background: it
// proves the endpoint, then watches, and wakes the controller when what it sees changes. So a reconcile never waits for a
// target that is dead, and none is needed to notice that it died.
//
// A new endpoint replaces the kept one only after its line came up. While it does not, the kept one stays in use and the
// Cluster's Synced condition says what is wrong with the new one.
package cluster
