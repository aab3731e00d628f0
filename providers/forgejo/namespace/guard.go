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
	"k8s.io/apimachinery/pkg/types"
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
	// stood are the guard rails that were found as they should be, and down the namespaces whose were taken down, by name.
	stood map[string]standing
	down  map[string]types.UID
}

// standing guard rails, as they were found.
type standing struct {
	namespace types.UID
	tenant    string
	most      int64
	at        time.Time
}

// again is how often guard rails are looked at that stand: nobody but the provider and operators may change them.
const again = 5 * time.Minute

// New returns a guard that writes and reads with c, and reads uncached with r.
func New(c client.Client, r client.Reader, clk clock.Clock) *Guard {
	return &Guard{client: c, cached: c, uncached: r, clock: clk, stood: map[string]standing{}, down: map[string]types.UID{}}
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
	uid, err := g.given(ctx, tenant, ns)
	if err != nil {
		if errors.As(err, new(*RefusedError)) && !users.occupied(ns) {
			// It may have been given once, and taken back.
			err = errors.Join(err, g.takeDown(ctx, tenant, ns))
		}
		return err
	}
	want := standing{namespace: uid, tenant: tenant, most: users.most[ns], at: g.clock.Now()}
	if !g.stands(ns, want, users) {
		if err := g.putUp(ctx, tenant, ns, want.most); err != nil {
			return errors.Wrapf(err, "cannot hold runners in in namespace %s", ns)
		}
		g.stood[ns] = want
	}
	return g.tidy(ctx, tenant, users)
}

// stands reports whether the guard rails were found as they are wanted a short time ago, and no runner has failed since for
// what may be one that is missing.
func (g *Guard) stands(ns string, want standing, u *users) bool {
	have, ok := g.stood[ns]
	at := have.at
	have.at = want.at
	return ok && have == want && want.at.Sub(at) < again && !u.failedSince(ns, at)
}

// Release the job namespace of a pool that goes, whose runners are gone, and those that it had before. The guard rails go with
// the last pool that names it. A namespace that is gone, or about to, is no error.
func (g *Guard) Release(ctx context.Context, r *v1alpha1.Runner) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	users, err := g.usersOf(ctx, r.Spec.ForProvider.Identity.Tenant)
	if err != nil {
		return err
	}
	users.without(r)
	for _, ns := range r.JobNamespaces() {
		err = errors.Join(err, g.release(ctx, r.Spec.ForProvider.Identity.Tenant, ns, users))
	}
	return err
}

func (g *Guard) release(ctx context.Context, tenant, ns string, users *users) error {
	if !users.any(ns) {
		return g.takeDown(ctx, tenant, ns)
	}
	if most, named := users.most[ns]; !named || most == 0 {
		return nil // What is left there is another pool's to sweep.
	}
	if _, err := g.given(ctx, tenant, ns); err != nil {
		var no *RefusedError
		if errors.As(err, &no) {
			return nil // Another pool's to tell.
		}
		return err
	}
	return g.putUp(ctx, tenant, ns, users.most[ns])
}

// given is the UID of a namespace that was given to the tenant's runners. The error is a [RefusedError] when it was not.
func (g *Guard) given(ctx context.Context, tenant, name string) (types.UID, error) {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := g.cached.Get(ctx, client.ObjectKey{Name: name}, ns)
	to, labelled := ns.Labels[names.LabelRunnersFor]
	switch {
	case kerrors.IsNotFound(err):
		return "", refused("namespace %s of spec.jobNamespace does not exist: ask an operator to make it, with the label %s: %s", name, names.LabelRunnersFor, tenant)
	case err != nil:
		return "", errors.Wrapf(err, "cannot read namespace %s", name)
	case ns.DeletionTimestamp != nil:
		return "", refused("namespace %s of spec.jobNamespace is being deleted", name)
	case ns.Labels[names.LabelManagedBy] == names.ManagedBy:
		return "", refused("namespace %s of spec.jobNamespace is one of Steading's own: runners need one of theirs", name)
	case !labelled:
		return "", refused("namespace %s of spec.jobNamespace was given to nobody's runners: ask an operator to label it %s: %s", name, names.LabelRunnersFor, tenant)
	case to != tenant:
		return "", refused("namespace %s of spec.jobNamespace was not given to the runners of tenant %s: ask an operator for one that is labelled %s: %s", name, tenant, names.LabelRunnersFor, tenant)
	default:
		return ns.UID, nil
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
		for _, former := range r.JobNamespaces() {
			u.most[former] += 0 // It is not swept yet.
		}
	}
}

// failedSince reports whether a runner in the namespace failed after a time before it had a job.
func (u *users) failedSince(ns string, t time.Time) bool {
	return slices.ContainsFunc(u.instances, func(i v1alpha1.RunnerInstance) bool {
		o := i.Status.AtProvider
		failed := o.Reason == v1alpha1.CreateFailed || o.Reason == v1alpha1.StartupTimeout
		return failed && i.Spec.ForProvider.Config.JobNamespace == ns && o.CompletionTime != nil && !o.CompletionTime.Time.Before(t.Truncate(time.Second))
	})
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
		if down, ok := g.down[ns.Name]; u.any(ns.Name) || ok && down == ns.UID {
			continue
		}
		if err := g.takeDown(ctx, tenant, ns.Name); err != nil {
			return err
		}
		g.down[ns.Name] = ns.UID
	}
	return nil
}
