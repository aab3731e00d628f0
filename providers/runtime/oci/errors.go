package oci

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/steading-dev/steading/apis/names"
)

// explain says what a registry's refusal means to the one who can do something about it.
func explain(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the registry does not answer in time")
	}
	if errors.Is(err, ErrAbsent) {
		return ErrAbsent
	}
	switch status := statusOf(err); status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return errors.New("the registry denies access; check the pull secret's entry for this host")
	case http.StatusTooManyRequests:
		return errors.New("the registry limits requests; it is tried again later")
	case 0, http.StatusNotFound:
		return errors.New(reason(err))
	default:
		return fmt.Errorf("the registry answers %d %s", status, http.StatusText(status))
	}
}

// reason says why in words that are the same on every run.
func reason(err error) string {
	var network *net.OpError
	var untrusted *tls.CertificateVerificationError
	switch status := statusOf(err); {
	case errors.Is(err, context.DeadlineExceeded):
		return "the registry does not answer in time"
	case errors.As(err, &untrusted):
		// Private addresses are tried by plain HTTP, too, which is refused. That is not what is wrong.
		return fmt.Sprintf("the registry's certificate cannot be verified: %s; a private CA is given to %s by the value caBundle of the install chart", untrusted.Err, names.ProviderRuntime)
	case errors.Is(err, errPlainHTTP):
		return errPlainHTTP.Error()
	case errors.Is(err, ErrAbsent):
		return ErrAbsent.Error()
	case status != 0:
		return fmt.Sprintf("the registry answers %d %s", status, http.StatusText(status))
	case errors.As(err, &network):
		// Without the addresses, of which ours varies.
		return fmt.Sprintf("cannot reach the registry: %s: %s", network.Op, network.Err)
	default:
		return err.Error()
	}
}

// statusOf is the HTTP status a registry refused with, 0 when it did not get as far.
func statusOf(err error) int {
	if errors.Is(err, ErrAbsent) {
		return http.StatusNotFound
	}
	var refused *transport.Error
	if errors.As(err, &refused) {
		return refused.StatusCode
	}
	return 0
}
