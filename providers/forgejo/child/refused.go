package child

import (
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A RefusedError says that a pool's template cannot be used.
type RefusedError struct {
	// Field of the claim: spec.pod.template.spec.restartPolicy.
	Field string
	// Why it is refused, and what to do.
	Why string
}

// Error names the field.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Why) }

// Reason of the condition RunnersMade.
func (e *RefusedError) Reason() xpv2.ConditionReason { return steading.ReasonTemplateRefused }

func refused(field, format string, args ...any) error {
	return &RefusedError{Field: field, Why: fmt.Sprintf(format, args...)}
}

// Where the templates are in a claim.
const (
	podField = "spec.pod.template"
	vmField  = "spec.vm.template"
)
