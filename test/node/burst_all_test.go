//go:build node && long

package node

// How many jobs are queued at once, at how many runners, and how often something is killed meanwhile.
const (
	burstJobs  = 300
	burstMax   = 50
	burstKills = 30
)
