// Package crossplane looks at Steading as Crossplane does, and as its own command line tool shows it: the tool traces claims on a
// running platform, renders the compositions and validates every example; Crossplane's own engine composes what the function
// desires; and definitions are taken back under running environments, as an upgrade in the wrong order does.
package crossplane
