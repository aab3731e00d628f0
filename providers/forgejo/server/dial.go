package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
)

// dialTimeout of a connection.
const dialTimeout = 5 * time.Second

// The settings that say where a server may be, for messages.
const (
	setting   = "spec.forgejo.url"
	allowedBy = "spec.allowedServers"
)

// A dialer connects to addresses that the operator allows, and remembers the last refusal: the API's client makes of it
// what it makes of any connection that fails.
type dialer struct {
	policy address.Policy
	// plain is whether the server is spoken to by HTTP without TLS, which the operator has to allow for its address.
	plain bool

	refusal atomic.Pointer[error]
}

func newDialer(url string, p address.Policy) *dialer {
	return &dialer{policy: p, plain: strings.HasPrefix(strings.ToLower(url), "http:")}
}

// dial a connection.
func (d *dialer) dial(ctx context.Context, network, to string) (net.Conn, error) {
	n := d.policy.Dialer(dialTimeout)
	check := n.Control
	n.Control = func(network, to string, c syscall.RawConn) error {
		err := check(network, to, c)
		if err == nil && d.plain {
			err = d.mayBePlain(to)
		}
		return err
	}
	conn, err := n.DialContext(ctx, network, to)
	d.note(err)
	return conn, err
}

// mayBePlain returns a [UnusableError] for an address where nothing but TLS is spoken.
func (d *dialer) mayBePlain(to string) error {
	a, err := netip.ParseAddrPort(to)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(d.policy.Allowed, func(p netip.Prefix) bool { return p.Contains(a.Addr().Unmap().WithZone("")) }) {
		return nil
	}
	return problem(steading.ReasonAddressRefused, "%s is not an address where a token may be sent without TLS: set %s to an https:// URL, or ask the operator to add the address to %s of the ClusterProviderConfig",
		a.Addr(), setting, allowedBy)
}

// note whether the connection was refused by us.
func (d *dialer) note(err error) {
	var (
		refused *address.RefusedError
		plain   *UnusableError
		why     error
	)
	switch {
	case errors.As(err, &refused):
		why = refused
	case errors.As(err, &plain):
		why = plain
	default:
		d.refusal.Store(nil)
		return
	}
	d.refusal.Store(&why)
}

// explain an error of the API's client by the refusal that is behind it, if one is.
func (d *dialer) explain(err error) error {
	if why := d.refusal.Load(); err != nil && why != nil {
		return *why
	}
	return err
}
