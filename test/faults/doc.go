// Package faults kills the processes of a platform at chosen moments of an environment's life, and expects the life to go
// on as if nothing had happened: one Helm release with the right content, the state that was asked for, each usage event
// once, nothing left when the environment is gone, and a ledger that says what exists.
//
// A seed is one life: create, upgrade, stop, start, delete. In each of the five, one of function, provider and Crossplane
// is killed, or a request of provider or Crossplane is lost on its way or on its way back, at the k-th request by which
// it, or Crossplane for the function, changes something about that environment; seed and operation say which, k, and
// whether the API server got the request before. FAULT_SEEDS=7 repeats a seed.
package faults
