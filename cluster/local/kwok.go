package local

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NodeName is the plane's only node, real or played by KWOK. Every pod that fits runs on it.
const NodeName = "node-0"

// fakeNode is big enough for what benchmarks put on a plane.
const fakeNode = `apiVersion: v1
kind: Node
metadata:
  name: ` + NodeName + `
  annotations: {kwok.x-k8s.io/node: fake, node.alpha.kubernetes.io/ttl: "0"}
  labels:
    kubernetes.io/hostname: ` + NodeName + `
    kubernetes.io/os: linux
    kubernetes.io/arch: amd64
    node.kubernetes.io/instance-type: kwok
status:
  capacity: &all {cpu: "100000", memory: 1000Ti, ephemeral-storage: 1000Ti, pods: "100000"}
  allocatable: *all
`

// startKWOK starts what plays nodes, pods and volumes as ServiceAccount
// kube-system/kwok-controller under the roles of KWOK's own manifests.
func (p *Plane) startKWOK(ctx context.Context) error {
	p.progress("starting kwok")
	manifests := []string{
		p.tools.Asset(KWOK, "kustomize/crd/bases/kwok.x-k8s.io_stages.yaml"),
		p.tools.Asset(KWOK, "kustomize/rbac"),
		p.tools.Asset(KWOK, "kustomize/stage/volume/rbac"),
		p.tools.Asset(KWOK, "kustomize/stage/node/fast"),
		p.tools.Asset(KWOK, "kustomize/stage/pod/fast"),
		p.tools.Asset(KWOK, "kustomize/stage/volume/fast"),
	}
	if err := p.ApplyFiles(ctx, manifests...); err != nil {
		return err
	}
	node, err := parseObjects([]byte(fakeNode))
	if err != nil {
		return err
	}
	if err := p.Apply(ctx, node...); err != nil {
		return err
	}
	kubeconfig, err := p.ServiceAccountKubeconfig(ctx, "kube-system", "kwok-controller")
	if err != nil {
		return err
	}
	err = p.startOnFreePorts(ctx, 1, func(port []int) Component {
		return Component{
			Name: "kwok", Path: p.tools.Path(KWOK),
			Args: []string{
				"--kubeconfig=" + kubeconfig, "--server-address=" + loopback(port[0]), "--node-port=" + strconv.Itoa(port[0]), "--node-ip=127.0.0.1",
				"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
				"--enable-crds=Stage", "--cidr=10.244.0.0/16", "--node-lease-duration-seconds=40",
			},
			Ready: func(ctx context.Context) error {
				return get(ctx, http.DefaultClient, "http://"+loopback(port[0])+"/healthz")
			},
		}
	})
	if err != nil {
		return err
	}
	return p.waitNodeReady(ctx)
}

func (p *Plane) waitNodeReady(ctx context.Context) error {
	node := &corev1.Node{}
	err := p.waitFor(ctx, time.Minute, func(ctx context.Context) (bool, error) {
		if err := p.client.Get(ctx, client.ObjectKey{Name: NodeName}, node); err != nil {
			return false, err
		}
		return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}), nil
	})
	if err != nil {
		return fmt.Errorf("cannot wait until node %s is ready: %w", NodeName, err)
	}
	return nil
}
