package server

import (
	"errors"
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/internal/address"
)

// An UnusableError is why nothing can be asked of a server, before it was asked anything.
type UnusableError struct {
	// Reason of the condition QueueWatched.
	Reason xpv2.ConditionReason

	message string
}

func (e *UnusableError) Error() string { return e.message }

func problem(reason xpv2.ConditionReason, format string, args ...any) error {
	return &UnusableError{Reason: reason, message: fmt.Sprintf(format, args...)}
}

// reasons of what the API's errors are, in the condition QueueWatched.
var reasons = []struct {
	err    error
	reason xpv2.ConditionReason
}{
	{api.ErrUnauthorized, steading.ReasonTokenRefused},
	{api.ErrForbidden, steading.ReasonTokenRefused},
	{api.ErrScopeGone, steading.ReasonScopeGone},
	{api.ErrNotForgejo, steading.ReasonWrongAnswer},
	{api.ErrRefused, steading.ReasonWrongAnswer},
	{api.ErrUnsupported, steading.ReasonServerUnsupported},
}

// ReasonOf an error of this package or of package api, in the condition QueueWatched. What is none of them is a server that
// cannot be reached.
func ReasonOf(err error) xpv2.ConditionReason {
	var (
		known   *UnusableError
		refused *address.RefusedError
	)
	switch {
	case errors.As(err, &known):
		return known.Reason
	case errors.As(err, &refused):
		return steading.ReasonAddressRefused
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.reason
		}
	}
	return steading.ReasonServerUnreachable
}
