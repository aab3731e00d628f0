package target

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/client-go/rest"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
)

// TestUnknownContexts: that a context is not known says nothing until all of them could be.
func TestUnknownContexts(t *testing.T) {
	for name, tc := range map[string]struct {
		started time.Duration
		want    error
	}{
		"NotStarted":  {-1, ErrNotYet},
		"JustStarted": {0, ErrNotYet},
		"LongStarted": {registering, errUnknownContext},
	} {
		t.Run(name, func(t *testing.T) {
			ts := New()
			if tc.started >= 0 {
				ts.run, ts.started = t.Context(), time.Now().Add(-tc.started)
			}
			_, err := ts.Get(context.Background(), "acme-edge")
			if !errors.Is(err, tc.want) || !errors.As(err, new(*UnreachableError)) {
				t.Errorf("have %v, want %v", err, tc.want)
			}
		})
	}
}

// TestWhyATargetIsNotReached: nobody was asked where the address is refused, as when the operator allows it no more, so that it is
// not said that nobody answers.
func TestWhyATargetIsNotReached(t *testing.T) {
	allowed := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for name, tc := range map[string]struct {
		policy address.Policy
		want   xpv2.ConditionReason
		says   string
	}{
		"Refused":  {address.Policy{What: "context", Setting: "spec.server", AllowedBy: "spec.allowedTargets"}, steading.ReasonAddressRefused, "127.0.0.1 is a loopback address"},
		"NoAnswer": {address.Policy{Allowed: allowed}, steading.ReasonTargetUnreachable, "its API server does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			targets := New()
			go func() { _ = targets.Start(ctx) }()
			cfg := &rest.Config{Host: "https://127.0.0.1:1", Dial: tc.policy.Dialer(time.Second).DialContext}
			if err := targets.Add("acme-edge", Context, cfg); err != nil {
				t.Fatal(err)
			}
			_, err := targets.Get(ctx, "acme-edge")
			if !errors.As(err, new(*UnreachableError)) || ReasonOf(err) != tc.want || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v", ReasonOf(err), err)
			}
		})
	}
}

// TestARefusalIsForgotten as soon as the target is reached, or is not for another reason, and said while the breaker is open.
func TestARefusalIsForgotten(t *testing.T) {
	refused := address.Policy{}.Check(netip.MustParseAddr("127.0.0.1"))
	var err error
	b := newBreaker("acme-edge", Context)
	rt := b.wrap(roundTrip(func(*http.Request) (*http.Response, error) {
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	ask := asking(t, rt)
	for _, tc := range []struct {
		answer error
		want   xpv2.ConditionReason
	}{
		{refused, steading.ReasonAddressRefused},
		{context.Canceled, steading.ReasonAddressRefused},
		{errors.New("connection refused"), steading.ReasonTargetUnreachable},
		{refused, steading.ReasonAddressRefused},
		{nil, steading.ReasonTargetUnreachable},
	} {
		err = tc.answer
		_ = ask()
		if have := ReasonOf(b.unreachable(errors.New("it is not"))); have != tc.want {
			t.Errorf("after %v it is %s, want %s", tc.answer, have, tc.want)
		}
	}
	err = refused
	for range breakerFailures {
		_ = ask()
	}
	err = nil
	if have := ask(); ReasonOf(have) != steading.ReasonAddressRefused || !errors.As(have, new(*UnreachableError)) {
		t.Errorf("the breaker says %v", have)
	}
}

// A found is what who proves a credential found.
type found xpv2.ConditionReason

func (f found) Error() string                         { return "found " + string(f) }
func (f found) ConditionReason() xpv2.ConditionReason { return xpv2.ConditionReason(f) }

// TestWhatIsKnownOfAContextIsSaid by all who use it, in place of what their own requests look like: a server whose certificate is
// not signed by the CA does not look like one that answers.
func TestWhatIsKnownOfAContextIsSaid(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	targets := New()
	go func() { _ = targets.Start(ctx) }()
	targets.Explain("acme-edge", found(steading.ReasonCAMismatch)) // Nobody knows it yet.
	if err := targets.Add("acme-edge", Context, &rest.Config{Host: "https://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		why  Cause
		want xpv2.ConditionReason
		says string
	}{
		{found(steading.ReasonCAMismatch), steading.ReasonCAMismatch, "found CAMismatch"},
		{nil, steading.ReasonTargetUnreachable, "its API server does not answer"},
	} {
		targets.Explain("acme-edge", tc.why)
		_, err := targets.Get(ctx, "acme-edge")
		if !errors.As(err, new(*UnreachableError)) || ReasonOf(err) != tc.want || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", ReasonOf(err), err)
		}
	}
}

// TestARevokedCredentialIsSaid: the server of a context answers, and does not know who asks. The platform's own says so itself.
func TestARevokedCredentialIsSaid(t *testing.T) {
	refuses := roundTrip(func(*http.Request) (*http.Response, error) { return answer(http.StatusUnauthorized) })
	if err := asking(t, newBreaker("acme-edge", Context).wrap(refuses))(); !errors.As(err, new(*UnreachableError)) || ReasonOf(err) != steading.ReasonCredentialRefused {
		t.Errorf("it is %v", err)
	}
	if err := asking(t, newBreaker("platform", Platform).wrap(refuses))(); err != nil {
		t.Errorf("of the platform it is %v", err)
	}
}
