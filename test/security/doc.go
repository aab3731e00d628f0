// Package security tests on a whole platform what no tenant may do, what no account needs to be able to do, and where no
// secret may show up: escape, least power, secrets, and how an environment's namespace is held in.
package security
