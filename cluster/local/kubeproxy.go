package local

import (
	"context"
	"net/http"
)

// kubeProxyConfig leaves the machine's connection tracking alone: its sizes are not the node's to set.
const kubeProxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
hostnameOverride: ${NODE}
clusterCIDR: ${PODS}
clientConnection: {kubeconfig: ${INSIDE}/kube-proxy.kubeconfig}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
healthzBindAddress: ${NODE_ADDRESS}:10256
metricsBindAddress: 127.0.0.1:10249
`

// startKubeProxy starts what makes Services reachable, on the node and from the machine.
func (p *Plane) startKubeProxy(ctx context.Context) error {
	if err := p.settings("kube-proxy.yaml", kubeProxyConfig); err != nil {
		return err
	}
	if err := p.nodeKubeconfig("kube-proxy", "system:kube-proxy"); err != nil {
		return err
	}
	program, err := p.onNodeProgram(KubeProxy)
	if err != nil {
		return err
	}
	c := p.onNode("kube-proxy", program, "--config="+inside+"/kube-proxy.yaml")
	c.Ready = func(ctx context.Context) error {
		return get(ctx, http.DefaultClient, "http://"+p.subnet.node()+":10256/healthz")
	}
	return p.Supervisor.Start(ctx, c)
}
