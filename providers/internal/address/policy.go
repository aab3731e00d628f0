// Package address says which network addresses a server that a tenant names may have.
package address

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Policy says which addresses a server may be at that a tenant names. It is asked when a connection is made, about the address
// that is connected to: a name that resolves to something else the second time is no way round it.
type Policy struct {
	// What is at the addresses, in a word: context.
	What string
	// Setting of the claim with the server's address, and the operator's of what is allowed, for messages: spec.server and
	// spec.allowedTargets.
	Setting, AllowedBy string
	// Allowed addresses, whatever else is said about them.
	Allowed []netip.Prefix
	// ControlPlane are the addresses of the control plane's own API server.
	ControlPlane []netip.Addr
}

// ParseAllowed reads the operator's list of CIDRs, which is in this field of the ClusterProviderConfig.
func ParseAllowed(field string, cidrs []string) ([]netip.Prefix, error) {
	var ps []netip.Prefix
	for _, c := range cidrs {
		p, err := netip.ParsePrefix(strings.TrimSpace(c))
		if err != nil {
			return nil, fmt.Errorf("cannot read %s of the ClusterProviderConfig: %w", field, err)
		}
		ps = append(ps, p.Masked())
	}
	return ps, nil
}

// metadataServices are those of clouds that are not at a link-local address: AWS by IPv6, Alibaba Cloud, Azure.
var metadataServices = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"),
}

// translated addresses carry an IPv4 address in their last four bytes (RFC 6052).
var translated = netip.MustParsePrefix("64:ff9b::/96")

// thisNetwork is treated by some systems like the loopback address.
var thisNetwork = netip.MustParsePrefix("0.0.0.0/8")

// Check returns an [RefusedError] for an address that is refused.
func (p Policy) Check(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	if translated.Contains(a) {
		b := a.As16()
		if err := p.Check(netip.AddrFrom4([4]byte(b[12:]))); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(p.Allowed, func(n netip.Prefix) bool { return n.Contains(a) }) {
		return nil
	}
	if what := p.special(a); what != "" {
		return &RefusedError{Address: a, What: what, policy: p}
	}
	return nil
}

// special says what makes an address one that no server may be at, empty if nothing does.
func (p Policy) special(a netip.Addr) string {
	switch {
	case a.IsLoopback():
		return "a loopback address"
	case a.IsLinkLocalUnicast():
		return "a link-local address"
	case a.IsUnspecified(), thisNetwork.Contains(a):
		return "no address of a host"
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "a multicast address"
	case slices.Contains(metadataServices, a):
		return "the address of a cloud's metadata service"
	case slices.Contains(p.ControlPlane, a):
		return "the control plane's own API server"
	}
	return ""
}

// Dialer connects to addresses that the policy allows.
func (p Policy) Dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:   timeout,
		KeepAlive: 30 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("cannot tell what address is connected to: %w", err)
			}
			return p.Check(to.Addr())
		},
	}
}

// Key identifies what the policy allows.
func (p Policy) Key() string { return fmt.Sprint(p.Allowed, p.ControlPlane) }

// A RefusedError says that a server is at an address that none may be at.
type RefusedError struct {
	// Address that the server's name stands for.
	Address netip.Addr
	// What it is.
	What string

	policy Policy
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s is %s, where no %s may be: set %s to the address that others reach it by, or ask the operator to add it to %s of the ClusterProviderConfig",
		e.Address, e.What, e.policy.What, e.policy.Setting, e.policy.AllowedBy)
}

// Of a server, by its URL or its host and port, all its addresses, sorted.
func Of(ctx context.Context, server string) ([]netip.Addr, error) {
	host := server
	if u, err := url.Parse(server); err == nil && u.Host != "" {
		host = u.Hostname()
	} else if h, _, err := net.SplitHostPort(server); err == nil {
		host = h
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("cannot find the control plane's own address: %w", err)
	}
	for i, a := range found {
		found[i] = a.Unmap()
	}
	slices.SortFunc(found, netip.Addr.Compare)
	return slices.Compact(found), nil
}
