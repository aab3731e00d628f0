package cluster

import (
	"errors"
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A Problem is why a cluster is not reached: a reason of the Reachable condition, and what to do.
type Problem struct {
	Reason  xpv2.ConditionReason
	Message string
}

func (p *Problem) Error() string { return p.Message }

func problem(reason xpv2.ConditionReason, format string, args ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// within says where the problem is, in front of what it is.
func (p *Problem) within(format string, args ...any) *Problem {
	return &Problem{Reason: p.Reason, Message: fmt.Sprintf(format, args...) + ": " + p.Message}
}

// problemOf is the problem that an error is, or that the target is unreachable because of it.
func problemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	return problem(steading.ReasonTargetUnreachable, "%s", err)
}
