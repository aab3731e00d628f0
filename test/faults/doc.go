// Package faults kills the processes of a platform at chosen moments of an environment's life, and expects the life to go
// on as if nothing had happened: one Helm release with the right content, the state that was asked for, each usage event
// once, nothing left when the environment is gone, and a ledger that says what exists.
//
// There are two stories. In one an environment lives on the platform's own cluster: create, upgrade, stop, start, delete. In
// the other a context is registered, an environment is created there, exposed and deleted, and the context is removed.
//
// A seed is one life. In each operation one of function, provider and Crossplane is killed, or a request is lost on its way or
// on its way back, at the k-th request about that life that changes something; for the function, which makes none, those of
// Crossplane count. The seed says what fails, how far through the operation, and whether the API server got the request
// before. How many requests there are is counted, at first in a life in which nothing fails, and k is drawn within the least
// that was. It varies a little: a request that did not come is waited for at a smaller k in a further life of the seed, until
// every cell of the table is filled.
//
// Each life says how it is repeated: FAULT_SEEDS=7 draws anew, FAULT_SEEDS=7:31.4.0.2.9 has these k, and leaves an operation
// with 0 alone.
package faults
