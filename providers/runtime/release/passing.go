package release

import (
	"net/url"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
)

// passingAttempts are made at a deployment that fails for a reason that passes, before it counts as failed.
const passingAttempts = 3

// passing reports whether an operation failed for a reason that says nothing about what it was to deploy: a request or its
// answer was lost, or the API server could not answer. It is tried again, where something else would be rolled back.
func (o *operation) passing() bool {
	if o == nil || o.running || o.err == nil || o.attempts >= passingAttempts {
		return false
	}
	return errors.As(o.err, new(*lostError)) || errors.As(o.err, new(*url.Error)) || kerrors.IsInternalError(o.err) || kerrors.IsServerTimeout(o.err) || kerrors.IsTimeout(o.err) ||
		kerrors.IsServiceUnavailable(o.err) || kerrors.IsTooManyRequests(o.err)
}
