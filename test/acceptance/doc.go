// Package acceptance drives the whole platform as its users do: real etcd, API server, controller manager, scheduler and
// Crossplane, our function and provider as processes under their own accounts, KWOK for nodes and pods. Claims go in,
// status comes out.
//
// The provider's polling intervals are set to an hour, so that whatever happens within a test happens because a watch
// saw it.
package acceptance
