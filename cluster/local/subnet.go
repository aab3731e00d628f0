package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Networks of nodes are 10.N.0.0/16, N from the first of these to the last.
const (
	firstSubnet = 180
	lastSubnet  = 249
)

// A subnet is the network of one node: on a wire to the machine, for its pods and for its services. Planes of other processes
// have others; it is free again when this process ends.
type subnet struct {
	n    int
	held *os.File
}

// newSubnet reserves a network that overlaps no route of this machine.
func newSubnet() (*subnet, error) {
	dir, err := CacheDir("subnets")
	if err != nil {
		return nil, fmt.Errorf("cannot reserve a network for the node: %w", err)
	}
	routes, err := readRoutes("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("cannot reserve a network for the node: %w", err)
	}
	for n := firstSubnet; n <= lastSubnet; n++ {
		f, err := tryLock(filepath.Join(dir, strconv.Itoa(n)))
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot reserve a network for the node: %w", err)
		}
		s := &subnet{n: n, held: f}
		if !s.overlaps(routes) {
			return s, nil
		}
		s.release()
	}
	return nil, fmt.Errorf("cannot reserve a network for the node: this machine has routes to all of 10.%d.0.0/16 to 10.%d.0.0/16", firstSubnet, lastSubnet)
}

func (s *subnet) release() { _ = s.held.Close() }

func (s *subnet) address(third, fourth int) string {
	return fmt.Sprintf("10.%d.%d.%d", s.n, third, fourth)
}

// all that belongs to the node.
func (s *subnet) all() string { return s.address(0, 0) + "/16" }

// machine is the machine's address on the wire to the node, and node is the node's.
func (s *subnet) machine() string { return s.address(255, 1) }
func (s *subnet) node() string    { return s.address(255, 2) }

func (s *subnet) pods() string     { return s.address(0, 0) + "/20" }
func (s *subnet) services() string { return s.address(128, 0) + "/20" }

// api is the Service kubernetes, which gets the first address, and dns is where pods ask for names.
func (s *subnet) api() string { return s.address(128, 1) }
func (s *subnet) dns() string { return s.address(128, 10) }

// link is the name of the wire's end on the machine.
func (s *subnet) link() string { return "steading" + strconv.Itoa(s.n) }

// up is nil once the machine has its address on the wire.
func (s *subnet) up(context.Context) error {
	i, err := net.InterfaceByName(s.link())
	if err != nil {
		return err
	}
	addresses, err := i.Addrs()
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if strings.HasPrefix(a.String(), s.machine()+"/") {
			return nil
		}
	}
	return fmt.Errorf("interface %s has no address yet", s.link())
}

// overlaps a route other than the default one and that of a node that just ended.
func (s *subnet) overlaps(routes []route) bool {
	ours := netip.MustParsePrefix(s.all())
	for _, r := range routes {
		if r.to.Bits() > 0 && r.link != s.link() && r.to.Overlaps(ours) {
			return true
		}
	}
	return false
}

// A route of this machine.
type route struct {
	link string
	to   netip.Prefix
}

// readRoutes reads what the kernel says: interface, destination, gateway, flags, three counters and the mask, numbers in
// hexadecimal, the last byte first.
func readRoutes(path string) ([]route, error) {
	b, err := os.ReadFile(path) //nolint:gosec // The kernel's.
	if err != nil {
		return nil, err
	}
	var routes []route
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 8 || f[0] == "Iface" {
			continue
		}
		to, err := strconv.ParseUint(f[1], 16, 32)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", path, err)
		}
		mask, err := strconv.ParseUint(f[7], 16, 32)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", path, err)
		}
		ones, _ := net.IPMask(littleEndian(mask)).Size()
		address, _ := netip.AddrFromSlice(littleEndian(to))
		routes = append(routes, route{link: f[0], to: netip.PrefixFrom(address, ones)})
	}
	return routes, nil
}

func littleEndian(n uint64) []byte {
	return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)} //nolint:gosec // G115: the byte is what is wanted.
}
