//go:build !long

package faults

// everySeed is whether all seeds run, or as many as fill the table.
const everySeed = false
