//go:build tools

// Package tools pins the External Secrets operator that contexts get their credentials from in tests.
package tools

import _ "github.com/external-secrets/external-secrets"
