// Package runnernode is a stand-in for a node that runs the pods of runners, for a control plane without containers. It
// registers a Node, which the scheduler binds the pods to whose template was given to [Place], and plays them as a kubelet
// does: a pod waits until the Secrets that it mounts are there, then its runner runs, in this process, by package onejob with
// the pod's own command line and the token in its volume, and its exit code is the pod's. A pod that is deleted takes its
// runner with it, after its grace period.
//
// The runner is the container whose arguments begin with one-job. All other containers start and end with it.
package runnernode
