// Package home makes a tenant's namespace on the control plane: the owners' rights in it, the backstop quota and a network
// policy that lets nothing in or out. It never takes over a namespace that it did not make.
//
// A Home that is deleted waits until nothing of its tenant stands any more. Then it deletes the namespace and waits until
// that is gone, or leaves it as it is, as the tenant's deletion policy says.
//
// Its status is shared with admission, which patches what is in use. The two write different fields.
package home
