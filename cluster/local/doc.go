// Package local runs real Kubernetes control planes on one Linux machine with
// nothing installed but Go.
//
// A Plane is etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
// KWOK (which plays nodes, pods and volumes), and, when asked for, Crossplane
// with its RBAC manager. All of them are built from the modules pinned below
// tools/, once, into the user's cache folder, and run as children of the
// calling process: when that process ends, however it ends, so do they.
//
// In place of KWOK a plane may have a real node, as root on Debian 12: containerd,
// kubelet and kube-proxy in namespaces of their own, with CoreDNS, a provisioner
// of volumes, what enforces network policies, and Crossplane as pods. It listens
// on a wire between the machine and the node instead of 127.0.0.1.
//
// Any number of planes may run at once. Each listens on free ports of
// 127.0.0.1 only and keeps all it writes below one directory. Every component
// that is not part of Kubernetes itself runs with a token of its own
// ServiceAccount, bound to the roles its own project ships.
//
// The package knows nothing of Steading; cluster/local/platform does.
package local
