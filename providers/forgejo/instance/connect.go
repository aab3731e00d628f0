package instance

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/server"
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

// session with the runner's server. As long as its pool watches that server in the same scope, it is by the pool's token and CA:
// those that the runner was made by may have been withdrawn since, and it could not be judged any more.
func (c *connector) session(ctx context.Context, mg *v1alpha1.RunnerInstance) (Server, error) {
	p := mg.Spec.ForProvider
	way := p.Config.Forgejo
	pool := &v1alpha1.Runner{}
	err := c.children.cached.Get(ctx, client.ObjectKey{Namespace: mg.Namespace, Name: p.Pool.Name}, pool)
	if client.IgnoreNotFound(err) != nil {
		return nil, errors.Wrapf(err, "cannot read the pool %s", p.Pool.Name)
	}
	now := pool.Spec.ForProvider.Settings.Forgejo
	if pool.UID == p.Pool.UID && watches(pool) && server.Same(now, way) {
		way = now
	}
	s, err := c.servers.Session(ctx, way, p.Claim.Namespace)
	if err != nil {
		return nil, err
	}
	return s, sees(ctx, s, mg)
}

// sees returns an error when the session is by the token of another user than the one that the runner is of, whose scope it is:
// nothing that it says is of the runner.
func sees(ctx context.Context, s Server, mg *v1alpha1.RunnerInstance) error {
	r := mg.Status.AtProvider.Registration
	if r == nil || r.OwnerID == 0 {
		return nil
	}
	id, err := s.User(ctx)
	if err != nil || id == 0 || id == r.OwnerID {
		return err
	}
	return errors.Errorf("the token is of user %d, and the runner is registered for user %d: nothing can be learned of it but by a token of that one", id, r.OwnerID)
}

// watches reports whether a pool can look at its server as its settings say now.
func watches(pool *v1alpha1.Runner) bool {
	w := pool.GetCondition(steading.ConditionQueueWatched)
	return w.Status == corev1.ConditionTrue && w.ObservedGeneration == pool.Generation
}
