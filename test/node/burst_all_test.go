//go:build node && long

package node

// How many jobs are queued at once, at how many runners, and how often something is killed meanwhile.
const (
	burstJobs  = 300
	burstMax   = 50
	burstKills = 30
)

// burstMaster is what of the master is killed: the controller manager, too, as when its machine goes down. Left alone it would
// retry each ReplicaSet and Job that it could not write a while longer each time, for up to 1,000 seconds, and it would be that
// wait which kills this close to each other measure.
var burstMaster = []string{"kube-apiserver", "kube-controller-manager"}
