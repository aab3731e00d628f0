//go:build tools

// Package tools pins Crossplane's own command line tool. The newer one, of a module of its own, is not served.
package tools

import _ "github.com/crossplane/crossplane/v2/cmd/crank"
