//go:build node && !long

package node

// How many jobs are queued at once, at how many runners, and how often something is killed meanwhile.
const (
	burstJobs  = 60
	burstMax   = 10
	burstKills = 5
)

// burstMaster is what of the master is killed.
var burstMaster = []string{"kube-apiserver"}
