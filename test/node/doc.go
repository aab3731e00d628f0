// Package node has the tests on a real node: Crossplane and our packages run as pods, installed as users install them, and so do
// environments, by containerd. `make test-node` runs them; they need root on Debian 12 and are built with the tag node.
package node
