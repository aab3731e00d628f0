// Package edgeoperators stands in for the operators that an exposed environment needs: external-dns with its source crd,
// cert-manager with an issuer, and a controller of Gateways; and for External Secrets, which fetches credentials. They work
// on the operators' own kinds, whose definitions [Definitions] takes from the operators' modules, on a real API server, and
// can be told to fail as theirs do.
package edgeoperators
