//go:build long

package acceptance

const (
	rounds      = 50
	dyingRounds = 5
)
