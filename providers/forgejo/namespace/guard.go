package namespace

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// The API server takes a moment until it knows of a right that was just given.
const tries, between = 20, 50 * time.Millisecond

// A Guard keeps the guard rails of job namespaces.
type Guard struct {
	client client.Client
	// cached reads Runners, RunnerInstances and the metadata of namespaces.
	cached client.Reader
	// uncached reads guard rails, where the provider has the right to.
	uncached client.Reader
	clock    clock.Clock
	// mu is held by one pool at a time: they share guard rails.
	mu sync.Mutex
}

// New returns a guard that writes and reads with c, and reads uncached with r.
func New(c client.Client, r client.Reader, clk clock.Clock) *Guard {
	return &Guard{client: c, cached: c, uncached: r, clock: clk}
}

// A RefusedError says why a pool's runners may not run in its job namespace.
type RefusedError struct{ message string }

// Error says what an operator or the tenant can do.
func (e *RefusedError) Error() string { return e.message }

// Reason of the condition RunnersMade.
func (e *RefusedError) Reason() xpv2.ConditionReason { return steading.ReasonJobNamespaceRefused }

func refused(format string, args ...any) error {
	return &RefusedError{message: fmt.Sprintf(format, args...)}
}

// Ensure that the pool may make runners in its job namespace, and that the guard rails stand there as they should. The error
// is a [RefusedError] when it may not.
func (g *Guard) Ensure(ctx context.Context, r *v1alpha1.Runner) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	tenant, ns := r.Spec.ForProvider.Identity.Tenant, r.Spec.ForProvider.Settings.JobNamespace
	users, err := g.usersOf(ctx, tenant)
	if err != nil {
		return err
	}
	users.runner(r)
	if err := g.given(ctx, tenant, ns); err != nil {
		if errors.As(err, new(*RefusedError)) && !users.occupied(ns) {
			// It may have been given once, and taken back.
			err = errors.Join(err, g.takeDown(ctx, tenant, ns))
		}
		return err
	}
	if err := g.putUp(ctx, tenant, ns, users.most[ns]); err != nil {
		return errors.Wrapf(err, "cannot hold runners in in namespace %s", ns)
	}
	return g.tidy(ctx, tenant, users)
}

// Release the job namespace of a pool that goes, whose runners are gone. The guard rails go with the last pool that names it. A
// namespace that is gone, or about to, is no error.
func (g *Guard) Release(ctx context.Context, r *v1alpha1.Runner) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	tenant, ns := r.Spec.ForProvider.Identity.Tenant, r.Spec.ForProvider.Settings.JobNamespace
	users, err := g.usersOf(ctx, tenant)
	if err != nil {
		return err
	}
	users.without(r)
	if !users.any(ns) {
		return g.takeDown(ctx, tenant, ns)
	}
	if err := g.given(ctx, tenant, ns); err != nil {
		var no *RefusedError
		if errors.As(err, &no) {
			return nil // Another pool's to tell.
		}
		return err
	}
	return g.putUp(ctx, tenant, ns, users.most[ns])
}

// given reports by an error whether the namespace was not given to the tenant's runners.
func (g *Guard) given(ctx context.Context, tenant, name string) error {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := g.cached.Get(ctx, client.ObjectKey{Name: name}, ns)
	to, labelled := ns.Labels[names.LabelRunnersFor]
	switch {
	case kerrors.IsNotFound(err):
		return refused("namespace %s of spec.jobNamespace does not exist: ask an operator to make it, with the label %s: %s", name, names.LabelRunnersFor, tenant)
	case err != nil:
		return errors.Wrapf(err, "cannot read namespace %s", name)
	case ns.DeletionTimestamp != nil:
		return refused("namespace %s of spec.jobNamespace is being deleted", name)
	case ns.Labels[names.LabelManagedBy] == names.ManagedBy:
		return refused("namespace %s of spec.jobNamespace is one of Steading's own: runners need one of theirs", name)
	case !labelled:
		return refused("namespace %s of spec.jobNamespace was given to nobody's runners: ask an operator to label it %s: %s", name, names.LabelRunnersFor, tenant)
	case to != tenant:
		return refused("namespace %s of spec.jobNamespace was not given to the runners of tenant %s: ask an operator for one that is labelled %s: %s", name, tenant, names.LabelRunnersFor, tenant)
	default:
		return nil
	}
}

// users are who needs guard rails, of one tenant, by namespace.
type users struct {
	runners   map[string]*v1alpha1.Runner
	instances []v1alpha1.RunnerInstance
	// most is how many runners the pools that name a namespace may have.
	most map[string]int64
}

func (g *Guard) usersOf(ctx context.Context, tenant string) (*users, error) {
	u := &users{runners: map[string]*v1alpha1.Runner{}, most: map[string]int64{}}
	of := []client.ListOption{client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelTenant: tenant}}
	rs, is := &v1alpha1.RunnerList{}, &v1alpha1.RunnerInstanceList{}
	if err := g.cached.List(ctx, rs, of...); err != nil {
		return nil, errors.Wrapf(err, "cannot list the runner pools of tenant %s", tenant)
	}
	if err := g.cached.List(ctx, is, of...); err != nil {
		return nil, errors.Wrapf(err, "cannot list the runners of tenant %s", tenant)
	}
	u.instances = is.Items
	for i := range rs.Items {
		u.runners[rs.Items[i].Name] = &rs.Items[i]
	}
	u.count()
	return u, nil
}

// runner is how the pool at hand is now.
func (u *users) runner(r *v1alpha1.Runner) {
	u.runners[r.Name] = r
	u.count()
}

// without a pool that goes.
func (u *users) without(r *v1alpha1.Runner) {
	delete(u.runners, r.Name)
	u.instances = slices.DeleteFunc(u.instances, func(i v1alpha1.RunnerInstance) bool { return i.Spec.ForProvider.Pool.Name == r.Name })
	u.count()
}

func (u *users) count() {
	clear(u.most)
	for _, r := range u.runners {
		s := r.Spec.ForProvider.Settings
		u.most[s.JobNamespace] += int64(s.MaxRunners)
	}
}

// occupied reports whether a runner is in the namespace, be it history that is to be deleted one day.
func (u *users) occupied(ns string) bool {
	return slices.ContainsFunc(u.instances, func(i v1alpha1.RunnerInstance) bool { return i.Spec.ForProvider.Config.JobNamespace == ns })
}

// any reports whether a pool names the namespace, or a runner is in it.
func (u *users) any(ns string) bool {
	_, named := u.most[ns]
	return named || u.occupied(ns)
}

// tidy takes the guard rails off the namespaces that were given to the tenant and that nobody needs any more, as when a pool
// names another one.
func (g *Guard) tidy(ctx context.Context, tenant string, u *users) error {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := g.cached.List(ctx, l, client.MatchingLabels{names.LabelRunnersFor: tenant}); err != nil {
		return errors.Wrapf(err, "cannot list the namespaces of the runners of tenant %s", tenant)
	}
	for _, ns := range l.Items {
		if u.any(ns.Name) {
			continue
		}
		if err := g.takeDown(ctx, tenant, ns.Name); err != nil {
			return err
		}
	}
	return nil
}
