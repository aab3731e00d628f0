// Package runners has the acceptance tests of runner pools: a platform whose provider-forgejo works for a stand-in of Forgejo in
// the test's own process. The pods of Jobs are played by package runnernode, and KubeVirt's machines by package kubevirt, after
// KubeVirt's own definitions; everything else is real.
package runners
