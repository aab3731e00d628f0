// Package kubevirt stands in for KubeVirt 1.6 on a control plane without machines. Its kinds are defined by KubeVirt's own code;
// its controllers are played: a VirtualMachine gets a VirtualMachineInstance as its run strategy says, that a launcher pod, and
// both the phases, conditions, printable status and finalizers that virt-controller and virt-handler give them.
//
// The guest of a machine that runs is a prepared image for runners. It reads the CDROM that the machine has a Secret on, runs
// one job as the files there say, by package onejob in this process, and powers off.
//
// Not played are KubeVirt's webhooks, disks (a DataVolume is never imported), networks, migration, and the Kubelet: launcher
// pods are bound to no node, and start as soon as they are there.
package kubevirt
