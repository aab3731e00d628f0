// Package compose is what every composer works with: the observed composite and its children going in, the desired
// status, children and conditions coming out. It knows nothing of gRPC and does no I/O; package serve adapts it to
// Crossplane's function protocol.
package compose
