// Package upgrade installs the version before this one the way users do, has environments live on it, upgrades to this tree
// under them, and goes back. Under the tag long, on a real node, and needs the repository's history.
package upgrade
