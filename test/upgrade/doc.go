// Package upgrade installs the version before this one the way users do, has environments live on it, upgrades to this tree
// under them, goes back, and at last uninstalls all as the documents say. Under the tag long, on a real node, and needs the repository's history.
package upgrade
