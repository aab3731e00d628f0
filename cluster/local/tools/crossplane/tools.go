//go:build tools

// Package tools pins the Crossplane that a local plane runs.
package tools

import _ "github.com/crossplane/crossplane/v2/cmd/crossplane"
