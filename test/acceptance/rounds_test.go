//go:build !long

package acceptance

const (
	rounds      = 5
	dyingRounds = 1
)
