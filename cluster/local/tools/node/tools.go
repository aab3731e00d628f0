//go:build tools

// Package tools pins the Kubernetes binaries that a real node runs.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
