//go:build tools

// Package tools pins Argo CD, and what it calls to build kustomizations.
package tools

import (
	_ "github.com/argoproj/argo-cd/v3/cmd"
	_ "sigs.k8s.io/kustomize/kustomize/v5"
)
