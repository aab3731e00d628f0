//go:build tools

// Package tools pins the etcd that a local plane runs.
package tools

import _ "go.etcd.io/etcd/server/v3"
