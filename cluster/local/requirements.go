package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// cniPlugins is where Debian has them.
const cniPlugins = "/usr/lib/cni"

// nodeNeeds are the programs of a real node that are not built from Go modules, by Debian's package.
var nodeNeeds = []struct{ program, debian string }{
	{"/usr/bin/containerd", "containerd"},
	{"/usr/sbin/runc", "runc"},
	{cniPlugins + "/ptp", "containernetworking-plugins"},
	{cniPlugins + "/host-local", "containernetworking-plugins"},
	{"/usr/sbin/iptables", "iptables"},
	{"/usr/bin/mount", "mount"},
	{"/usr/bin/nsenter", "util-linux"},
	{"/usr/bin/unshare", "util-linux"},
	{"/usr/sbin/ip", "iproute2"},
}

// CanRunNode returns why this machine cannot run a real node, and how it could; nil if it can, having installed what was
// missing.
func CanRunNode(ctx context.Context, progress func(string)) error {
	if runtime.GOOS != "linux" {
		return errors.New("cannot run a real node: it needs Linux")
	}
	if os.Geteuid() != 0 {
		return errors.New("cannot run a real node: containers and networks need root: run this as root, or without NODE=containerd, where KWOK plays the node")
	}
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}
	install := "apt-get install --no-install-recommends " + strings.Join(missing, " ")
	release, err := os.ReadFile("/etc/os-release")
	if err != nil || !isDebian12(string(release)) {
		return fmt.Errorf("cannot run a real node: this machine lacks %s, as Debian 12 calls them: install what has the same programs in the same places", strings.Join(missing, ", "))
	}
	progress("a real node needs " + strings.Join(missing, ", ") + ": " + install)
	if err := aptInstall(ctx, missing); err != nil {
		return fmt.Errorf("cannot run a real node: %w: run %s by hand", err, install)
	}
	return nil
}

// missingPackages of Debian.
func missingPackages() []string {
	var missing []string
	for _, n := range nodeNeeds {
		if !exists(n.program) && !slices.Contains(missing, n.debian) {
			missing = append(missing, n.debian)
		}
	}
	return missing
}

// isDebian12 by /etc/os-release.
func isDebian12(release string) bool {
	lines := strings.Split(release, "\n")
	return slices.Contains(lines, "ID=debian") && slices.Contains(lines, `VERSION_ID="12"`)
}

// aptInstall packages. The daemon that containerd's brings along is not started: the node has its own.
func aptInstall(ctx context.Context, packages []string) error {
	policy, err := keepStopped()
	if err != nil {
		return err
	}
	defer policy()
	for _, args := range [][]string{{"update"}, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)} {
		cmd := exec.CommandContext(ctx, "apt-get", args...) //nolint:gosec // Packages that we name.
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s", args[0], err, tail(string(bytes.TrimSpace(out)), 5))
		}
	}
	return nil
}

// keepStopped has Debian start no daemon that it installs, unless the machine has a policy of its own, until the function that
// it returns is called.
func keepStopped() (func(), error) {
	const path = "/usr/sbin/policy-rc.d"
	if exists(path) {
		return func() {}, nil
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil { //nolint:gosec // A program, for Debian's tools.
		return nil, fmt.Errorf("cannot keep daemons from being started: %w", err)
	}
	return func() { _ = os.Remove(path) }, nil
}
