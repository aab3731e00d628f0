package local

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Node says what runs a plane's pods.
type Node string

const (
	// NodeKWOK is played by KWOK: no container runs, and nothing is needed for it.
	NodeKWOK Node = "kwok"
	// NodeContainerd is this machine, in namespaces of its own: containerd runs the pods. It needs root, and Debian 12 or
	// what it has.
	NodeContainerd Node = "containerd"
)

// nodeTimeout is for a node whose tools are built: it pulls what it runs from a registry on the same machine.
const nodeTimeout = 10 * time.Minute

// inside is where the node finds its folder, in its own mount namespace.
const inside = "/mnt"

//go:embed namespaces.sh
var namespaces []byte

// startReal starts a plane with a real node, which Crossplane runs on like everything else.
func (p *Plane) startReal(ctx context.Context, o Options) error {
	if err := CanRunNode(ctx, p.progress); err != nil {
		return err
	}
	tools := append([]Tool{Etcd, KubeAPIServer, ControllerManager, Scheduler}, NodeTools...)
	if o.Crossplane {
		tools = append(tools, Crossplane)
	}
	var err error
	if p.tools, err = BuildTools(ctx, p.progress, tools...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	if err := p.startNamespaces(ctx); err != nil {
		return err
	}
	if err := p.startKubernetes(ctx); err != nil {
		return err
	}
	if err := p.together(func() error { return p.startControllers(ctx) }, func() error { return p.pushNodeImages(ctx, tools...) }); err != nil {
		return err
	}
	if err := p.startNode(ctx); err != nil {
		return err
	}
	if !o.Crossplane {
		return nil
	}
	return p.installCrossplane(ctx, o.CrossplaneArgs)
}

// nodeFile is the path of a file of the node, on the machine.
func (p *Plane) nodeFile(path string) string { return p.file("node/" + path) }

// startNamespaces starts what holds the node's namespaces, and the registry that machine, node and pods reach by the same
// name: the machine's address on the wire to the node.
func (p *Plane) startNamespaces(ctx context.Context) error {
	p.progress("making the node's namespaces")
	var err error
	if p.subnet, err = newSubnet(); err != nil {
		return err
	}
	p.host = p.subnet.machine()
	if err := makeCgroups(p.dir); err != nil {
		return err
	}
	for _, dir := range []string{"kubelet", "volumes", "containerd"} {
		if err := os.MkdirAll(p.nodeFile(dir), 0o700); err != nil {
			return fmt.Errorf("cannot make the node's folders: %w", err)
		}
	}
	if err := writePrivate(p.nodeFile("namespaces.sh"), namespaces); err != nil {
		return fmt.Errorf("cannot write the node's script: %w", err)
	}
	err = p.Supervisor.Start(ctx, Component{
		Name: "namespaces", Path: "/bin/sh",
		Args: []string{p.nodeFile("namespaces.sh"), p.nodeFile(""), p.subnet.link(), p.subnet.machine(), p.subnet.node(), p.subnet.all(), p.subnet.pods()},
		Ready: func(ctx context.Context) error {
			if !exists(p.nodeFile("up")) {
				return errors.New("the namespaces are not up yet")
			}
			return p.subnet.up(ctx)
		},
	})
	if err != nil {
		return err
	}
	p.registry, err = startRegistryAt(p.file("registry"), p.host)
	return err
}

// startNode starts what makes a node of the namespaces, and waits until it is ready.
func (p *Plane) startNode(ctx context.Context) error {
	p.progress("starting containerd, kubelet and kube-proxy")
	if err := p.startContainerd(ctx); err != nil {
		return err
	}
	if err := p.together(func() error { return p.startKubelet(ctx) }, func() error { return p.startKubeProxy(ctx) }); err != nil {
		return err
	}
	if err := p.waitNodeReady(ctx); err != nil {
		return err
	}
	return p.applyAddons(ctx)
}

// onNode is a component that runs in the node's namespaces. Its paths are the node's.
func (p *Plane) onNode(name, program string, args ...string) Component {
	enter := `pid=$(cat "$1"); shift; exec nsenter --target "$pid" --mount --net --pid="/proc/$pid/ns/pid_for_children" -- "$@"`
	return Component{Name: name, Path: "/bin/sh", Args: append([]string{"-c", enter, "sh", p.nodeFile("pid"), program}, args...)}
}

// settings writes a program's configuration to the node's folder.
func (p *Plane) settings(file, content string) error {
	if err := writePrivate(p.nodeFile(file), []byte(p.filled(content))); err != nil {
		return fmt.Errorf("cannot write the node's %s: %w", filepath.Base(file), err)
	}
	return nil
}

// filled is a text with what the plane's things are called.
func (p *Plane) filled(text string) string {
	return strings.NewReplacer(
		"${INSIDE}", inside, "${REGISTRY}", p.registryHost(), "${CNI_PLUGINS}", cniPlugins, "${CGROUP}", cgroupOf(p.dir),
		"${NODE}", NodeName, "${NODE_ADDRESS}", p.subnet.node(), "${PODS}", p.subnet.pods(), "${DNS}", p.subnet.dns(),
		"${PAUSE}", p.images[Pause], "${COREDNS}", p.images[CoreDNS], "${PROVISIONER}", p.images[Provisioner], "${NETWORK_POLICIES}", p.images[NetworkPolicies],
	).Replace(text)
}

func (p *Plane) registryHost() string {
	if p.registry == nil {
		return ""
	}
	return p.registry.Host()
}

// endNode removes what the node's processes cannot take with them.
func (p *Plane) endNode() error {
	if p.subnet == nil {
		return nil
	}
	p.subnet.release()
	errs := []error{RemoveCgroups(p.dir)}
	if p.registry != nil {
		errs = append(errs, p.registry.Stop())
	}
	return errors.Join(errs...)
}
