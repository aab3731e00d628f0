//go:build tools

// Package tools pins what runs as pods on a real node, besides Crossplane: CoreDNS, with the plugins that a cluster needs, a
// provisioner of volumes, and what enforces network policies.
package tools

import (
	_ "sigs.k8s.io/kube-network-policies/cmd"
)
