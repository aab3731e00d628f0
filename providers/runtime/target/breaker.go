package target

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/steading-dev/steading/providers/internal/address"
)

// A breaker stops asking a target that has not answered five times in a row, and asks again, once, every ten seconds.
type breaker struct {
	name  string
	kind  Kind
	state *gobreaker.TwoStepCircuitBreaker[struct{}]
	// refused is why the target's address was refused when it was last dialled. Nil: it was not.
	refused *atomic.Pointer[address.RefusedError]
	inner   http.RoundTripper
}

const (
	breakerFailures = 5
	breakerPause    = 10 * time.Second
)

func newBreaker(name string, kind Kind) *breaker {
	return &breaker{name: name, kind: kind, refused: &atomic.Pointer[address.RefusedError]{}, state: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     breakerPause,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerFailures },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			if from == gobreaker.StateClosed {
				breakersOpen.WithLabelValues(string(kind)).Inc()
			}
			if to == gobreaker.StateClosed {
				breakersOpen.WithLabelValues(string(kind)).Dec()
			}
		},
	})}
}

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
		return nil, b.unreachable("its API server did not answer five times in a row; it is asked again in ten seconds")
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
	}
	return res, err
}

// unreachable says why the target is not reached: what it looks like, unless nobody was asked, since the address is refused.
func (b *breaker) unreachable(looks string) error {
	if r := b.refused.Load(); r != nil {
		return &UnreachableError{Context: b.name, Err: r}
	}
	return &UnreachableError{Context: b.name, Err: errors.New(looks)}
}

// refusalIn an error, nil if it is another.
func refusalIn(err error) *address.RefusedError {
	var r *address.RefusedError
	errors.As(err, &r)
	return r
}
