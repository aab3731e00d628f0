// Package edge makes the services of environments reachable: it is the controller of [v1alpha1.Edge].
//
// On the control plane, in namespace steading-edge, an Edge is a DNSEndpoint, which external-dns turns into records, and a
// Certificate, which cert-manager has issued. On the environment's cluster it is a copy of the certificate's Secret, and an
// Ingress or one HTTPRoute a service. No tenant and no registered cluster ever holds a credential for DNS.
//
// What is on the environment's cluster is written as the account steading-deployer of its namespace, so that an Edge has no
// power there that the environment has not. The provider's own account annotates the namespace with the hosts it may route,
// and looks for routes of others.
//
// An Edge says what it sees in two verdicts, exposed and certificate, and holds back nothing. When it is deleted it has a
// minute to clean up; what is left then goes to an [v1alpha1.EdgeRemainder].
package edge
