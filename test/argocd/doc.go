// Package argocd holds what cluster/argocd tells Argo CD to Argo CD itself: health scripts run in its own engine, on objects
// as a running platform has them, and, under the tag long, its controller and repository server sync the example repository
// on a control plane.
//
// testdata/ready has an object of each kind as it was on a platform where everything was well, and testdata/seen others in
// other states. Argo CD is a module of its own, cluster/local/tools/argocd, since it needs another Kubernetes than we do.
package argocd
