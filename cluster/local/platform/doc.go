// Package platform runs Steading on control planes of package local: packages
// built from this source tree in a registry of its own, cluster/install applied,
// function and provider as processes of the host.
//
// The command cluster/local/cmd/steading-local keeps one running for a person;
// acceptance tests and benchmarks start their own in process.
package platform
