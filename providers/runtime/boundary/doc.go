// Package boundary makes an environment's namespace and what holds it in, keeps both as they should be, and takes them
// down again.
//
// What it makes is applied with server-side apply as field manager steading-runtime, compared with what is watched, and
// repaired when it drifts. A namespace without our identity is refused. Deletion waits for the environment's Release,
// deletes the namespace, waits until it is confirmed gone, and says until then what holds it up.
package boundary
