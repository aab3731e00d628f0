// Package namespace says in which namespaces a tenant's runners may run, and holds them in there.
//
// A namespace is given to a tenant by an operator, with a label, and by nothing else: who writes a pool's claim says what runs,
// and so must not say where. In it the provider gives itself the right to make runners, and puts up what runners have in common:
// an account whose token is mounted nowhere, a quota of as many pods as the tenant's pools may have runners there, and a network
// policy. They stand as long as a pool names the namespace or a runner is left in it.
//
// What has one of their names and was not made here is refused, never taken over.
package namespace
