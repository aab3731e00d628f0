package target

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/sony/gobreaker/v2"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
)

// A breaker stops asking a target that has not answered five times in a row, and asks again, once, every ten seconds.
type breaker struct {
	name  string
	kind  Kind
	state *gobreaker.TwoStepCircuitBreaker[struct{}]
	// refused is why the target's address was refused when it was last dialled. Nil: it was not.
	refused *atomic.Pointer[address.RefusedError]
	// cause is what who proves the credential last found. Nil: nothing was in the way.
	cause *atomic.Pointer[Cause]
	inner http.RoundTripper
}

const (
	breakerFailures = 5
	breakerPause    = 10 * time.Second
)

func newBreaker(name string, kind Kind) *breaker {
	return &breaker{name: name, kind: kind, refused: &atomic.Pointer[address.RefusedError]{}, cause: &atomic.Pointer[Cause]{}, state: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     breakerPause,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerFailures },
	})}
}

// open reports whether the target is not asked, or only to find out whether it answers again.
func (b *breaker) open() bool { return b.state.State() != gobreaker.StateClosed }

// wrap puts the breaker around a transport. All transports of a target share its state.
func (b *breaker) wrap(rt http.RoundTripper) http.RoundTripper {
	shared := *b
	shared.inner = rt
	return &shared
}

func (b *breaker) RoundTrip(req *http.Request) (*http.Response, error) {
	done, err := b.state.Allow()
	if err != nil {
		requests.WithLabelValues(string(b.kind), "broken").Inc()
		return nil, b.unreachable(errors.New("its API server did not answer five times in a row; it is asked again in ten seconds"))
	}
	res, err := b.inner.RoundTrip(req)
	switch {
	case errors.Is(err, context.Canceled):
		// We hung up. That says nothing about the other side.
		done(nil)
		requests.WithLabelValues(string(b.kind), "canceled").Inc()
	case err != nil:
		b.refused.Store(refusalIn(err))
		done(err)
		requests.WithLabelValues(string(b.kind), "error").Inc()
	default:
		b.refused.Store(nil)
		done(nil)
		requests.WithLabelValues(string(b.kind), strconv.Itoa(res.StatusCode/100)+"xx").Inc()
		if b.kind == Context && res.StatusCode == http.StatusUnauthorized {
			res.Body.Close() //nolint:errcheck,gosec // Nothing of it is wanted.
			return nil, b.unreachable(credentialRefusedError{})
		}
	}
	return res, err
}

// unreachable says why the target is not reached: what it looks like, unless nobody was asked, since the address is refused, or
// who proves the credential knows better.
func (b *breaker) unreachable(looks error) error {
	if r := b.refused.Load(); r != nil {
		return &UnreachableError{Context: b.name, Err: r}
	}
	if c := b.cause.Load(); c != nil {
		return &UnreachableError{Context: b.name, Err: *c}
	}
	return &UnreachableError{Context: b.name, Err: looks}
}

// A credentialRefusedError says that the server does not know who asks, as when the credential was revoked.
type credentialRefusedError struct{}

func (credentialRefusedError) Error() string {
	return "its API server refuses the credential (401 Unauthorized): it is wrong, has expired or was revoked"
}

// ConditionReason of it.
func (credentialRefusedError) ConditionReason() xpv2.ConditionReason {
	return steading.ReasonCredentialRefused
}

// refusalIn an error, nil if it is another.
func refusalIn(err error) *address.RefusedError {
	var r *address.RefusedError
	errors.As(err, &r)
	return r
}
