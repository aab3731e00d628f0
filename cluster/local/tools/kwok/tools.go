//go:build tools

// Package tools pins the KWOK that plays a local plane's nodes.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
