// Package docs holds README.md and docs/ to what they show. Every fenced block of theirs that is called console is run, in
// order, page after page, against a platform with an edge cluster and the example claims, and its output is compared:
//
//   - A line that starts with "$ " is a command, for bash, at the top of the source tree. A backslash at its end, or a
//     here-document that ends in EOF, continues it.
//   - What follows is what the command prints, standard error included. Three dots alone in a line stand for any lines.
//     Runs of spaces are one space, and so is how wide a table's column is.
//   - What differs from run to run is masked on both sides before it is compared; mask.go lists what.
//   - A command that only looks (kubectl get, describe, events, auth) is repeated until it prints what is expected, or until
//     the harness has no more patience. Any other is run once.
//   - The environment has KUBECONFIG, EDGE (the edge's kubeconfig) and kubectl.
//
// Blocks that are called sh are for the reader only. `go test ./test/docs -update` writes what was printed into the pages.
package docs
