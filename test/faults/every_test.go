//go:build long

package faults

// everySeed is whether all seeds run, or six.
const everySeed = true
