package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeletConfig leaves the machine's own settings alone, and evicts nobody for what the machine lacks: what fills its disk and
// memory is rarely a pod.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: ${INSIDE}/pki/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: ${INSIDE}/pki/tls.crt
tlsPrivateKeyFile: ${INSIDE}/pki/tls.key
clusterDomain: cluster.local
clusterDNS: [${DNS}]
resolvConf: ""
containerRuntimeEndpoint: unix://${INSIDE}/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /${CGROUP}
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
podLogsDir: ${INSIDE}/logs
volumePluginDir: ${INSIDE}/kubelet/volumeplugins
serializeImagePulls: false
imageGCHighThresholdPercent: 100
evictionHard:
  memory.available: "0%"
  nodefs.available: "0%"
  nodefs.inodesFree: "0%"
  imagefs.available: "0%"
  imagefs.inodesFree: "0%"
`

// kubeletAccess lets the API server ask the kubelet for logs, and have it run commands and forward ports.
const kubeletAccess = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "steading-local:kubelet"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:kubelet-api-admin"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "steading-local:kube-apiserver"}]
`

// startKubelet starts the kubelet as the node's own user.
func (p *Plane) startKubelet(ctx context.Context) error {
	access, err := parseObjects([]byte(kubeletAccess))
	if err != nil {
		return err
	}
	if err := p.Apply(ctx, access...); err != nil {
		return err
	}
	serving, err := p.ca.server("kubelet", NodeName, p.subnet.node())
	if err != nil {
		return fmt.Errorf("cannot make the kubelet's certificate: %w", err)
	}
	if err := serving.write(p.nodeFile("pki"), p.ca.pem); err != nil {
		return fmt.Errorf("cannot write the kubelet's certificate: %w", err)
	}
	if err := p.settings("kubelet.yaml", kubeletConfig); err != nil {
		return err
	}
	if err := p.nodeKubeconfig("kubelet", "system:node:"+NodeName, "system:nodes"); err != nil {
		return err
	}
	program, err := p.onNodeProgram(Kubelet)
	if err != nil {
		return err
	}
	c := p.onNode("kubelet", program,
		"--config="+inside+"/kubelet.yaml", "--kubeconfig="+inside+"/kubelet.kubeconfig", "--root-dir="+inside+"/kubelet",
		"--hostname-override="+NodeName, "--node-ip="+p.subnet.node())
	c.Env = memoryForTime
	c.Ready = p.healthy("https://"+p.subnet.node()+":10250/healthz", "admin")
	return p.Supervisor.Start(ctx, c)
}

// nodeKubeconfig writes the kubeconfig of a user, where the node finds it.
func (p *Plane) nodeKubeconfig(file, user string, groups ...string) error {
	c, err := p.ca.client(user, groups...)
	if err != nil {
		return fmt.Errorf("cannot make a certificate for %s: %w", user, err)
	}
	auth := api.AuthInfo{ClientCertificateData: c.cert, ClientKeyData: c.key}
	return writeKubeconfig(p.nodeFile(file+".kubeconfig"), p.name, p.server, p.ca.pem, auth)
}

// onNodeProgram is the path of a tool on the node. What is in the user's cache folder may be out of its sight.
func (p *Plane) onNodeProgram(tool Tool) (string, error) {
	b, err := os.ReadFile(p.tools.Path(tool))
	if err != nil {
		return "", fmt.Errorf("cannot bring %s to the node: %w", tool, err)
	}
	to := p.nodeFile("bin/" + string(tool))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", fmt.Errorf("cannot bring %s to the node: %w", tool, err)
	}
	if err := os.WriteFile(to, b, 0o700); err != nil { //nolint:gosec // A program has to be executable.
		return "", fmt.Errorf("cannot bring %s to the node: %w", tool, err)
	}
	return inside + "/bin/" + string(tool), nil
}
