package local

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// containerdConfig keeps all that containerd writes in the node's folder, or where it ends with the node's namespaces.
const containerdConfig = `version = 2
root = "${INSIDE}/containerd/root"
state = "/run/containerd-state"

[grpc]
  address = "${INSIDE}/containerd/containerd.sock"

[plugins."io.containerd.internal.v1.opt"]
  path = "${INSIDE}/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE}"
  # Where the machine itself may not make processes less likely to be killed, the node does without.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${CNI_PLUGINS}"
    conf_dir = "${INSIDE}/cni"

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${INSIDE}/registries"
`

// registryConfig has containerd speak plain HTTP to the plane's registry.
const registryConfig = `server = "http://${REGISTRY}"

[host."http://${REGISTRY}"]
  capabilities = ["pull", "resolve"]
`

// networkConfig gives each pod a wire of its own to the node, which routes: so it sees all packets between pods, and can
// enforce policies on them.
const networkConfig = `{
  "cniVersion": "0.4.0",
  "name": "steading",
  "plugins": [
    {
      "type": "ptp",
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/addresses",
        "ranges": [[{"subnet": "${PODS}"}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// startContainerd starts Debian's containerd, with runc and the CNI plugins beside it.
func (p *Plane) startContainerd(ctx context.Context) error {
	for file, content := range map[string]string{
		"containerd.toml": containerdConfig,
		"registries/" + p.registryHost() + "/hosts.toml": registryConfig,
		"cni/10-steading.conflist":                       networkConfig,
	} {
		if err := p.settings(file, content); err != nil {
			return err
		}
	}
	c := p.onNode("containerd", "/usr/bin/containerd", "--config="+inside+"/containerd.toml")
	socket := p.nodeFile("containerd/containerd.sock")
	c.Ready = func(ctx context.Context) error {
		short, done, err := shortPath(socket)
		if err != nil {
			return err
		}
		defer done()
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", short)
		if err != nil {
			return fmt.Errorf("containerd does not listen: %w", err)
		}
		return conn.Close()
	}
	return p.Supervisor.Start(ctx, c)
}

// shortPath of a socket, by a descriptor of its folder until done: the kernel allows some hundred bytes only.
func shortPath(socket string) (path string, done func(), err error) {
	d, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), filepath.Base(socket)), func() { _ = d.Close() }, nil
}
