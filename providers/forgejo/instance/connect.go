package instance

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// connector makes an external client for each look at a runner.
type connector struct {
	o        kit.Options
	servers  Servers
	children children
	marks    *marks
	tracker  resource.ModernTracker
	// letGoAfter is how long deregistration is tried when a runner is deleted.
	letGoAfter time.Duration
}

// Connect asks nobody yet: a runner that is finished needs no server.
func (c *connector) Connect(ctx context.Context, mg *v1alpha1.RunnerInstance) (managed.TypedExternalClient[*v1alpha1.RunnerInstance], error) {
	if err := c.tracker.Track(ctx, mg); err != nil {
		return nil, errors.Wrap(err, "cannot record that the provider config is in use")
	}
	return &external{connector: c, mark: c.marks.of(mg.UID)}, nil
}
