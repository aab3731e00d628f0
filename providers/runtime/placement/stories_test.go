//go:build !long

package placement

// stories of two writers that are played.
const stories = 40
