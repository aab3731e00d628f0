package cluster

import (
	"errors"
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// An UnreachedError is why a cluster is not reached: a reason of the Reachable condition, and what to do.
type UnreachedError struct {
	Reason  xpv2.ConditionReason
	Message string
}

func (p *UnreachedError) Error() string { return p.Message }

// ConditionReason of it.
func (p *UnreachedError) ConditionReason() xpv2.ConditionReason { return p.Reason }

func problem(reason xpv2.ConditionReason, format string, args ...any) *UnreachedError {
	return &UnreachedError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// within says where the problem is, in front of what it is.
func (p *UnreachedError) within(format string, args ...any) *UnreachedError {
	return &UnreachedError{Reason: p.Reason, Message: fmt.Sprintf(format, args...) + ": " + p.Message}
}

// problemOf is the problem that an error is, or that the target is unreachable because of it.
func problemOf(err error) *UnreachedError {
	var p *UnreachedError
	if errors.As(err, &p) {
		return p
	}
	return problem(steading.ReasonTargetUnreachable, "%s", err)
}
