package edge

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpevent "github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// A tidier retries what edges could not clean up, for ever.
type tidier struct {
	cleaner cleaner
	cache   client.Reader
	claims  *kit.ClaimReporter
	clock   clock.PassiveClock
	backoff kit.Backoff
	log     logging.Logger
}

// Reconcile one remainder.
func (t *tidier) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer t.count(ctx)
	r := &v1alpha1.EdgeRemainder{}
	if err := t.cleaner.system.Get(ctx, req.NamespacedName, r); err != nil {
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot read the remainder")
	}
	if r.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if superseded, err := t.superseded(ctx, r); superseded || err != nil {
		return reconcile.Result{}, errors.Join(err, t.end(ctx, r, superseded, "superseded"))
	}
	c, err := t.within(ctx, r)
	if err != nil {
		return reconcile.Result{}, err
	}
	l, failed := c.sweep(ctx, r.Spec)
	if failed != nil {
		t.log.Debug("Cannot delete all that is left of an edge", "remainder", r.Name, "error", failed)
	}
	if failed == nil && len(l.words) == 0 {
		t.claims.Event(ctx, kit.EnvironmentClaim(r.Spec.Claim), xpevent.Event{
			Type: xpevent.TypeNormal, Reason: v1alpha1.EdgeRemainderKind, Message: "what exposed the environment is cleaned up",
		})
		return reconcile.Result{}, t.end(ctx, r, true, "cleaned")
	}
	return reconcile.Result{RequeueAfter: t.backoff.Next(r.CreationTimestamp.Time, t.clock.Now())}, t.report(ctx, r, l, failed)
}

// superseded reports whether the environment is exposed again: what is left is then its new Edge's.
func (t *tidier) superseded(ctx context.Context, r *v1alpha1.EdgeRemainder) (bool, error) {
	e := &v1alpha1.Edge{}
	key := types.NamespacedName{Namespace: names.SystemNamespace, Name: names.Environment(r.Spec.Identity.Tenant, r.Spec.Identity.Environment)}
	if err := t.cleaner.system.Get(ctx, key, e); err != nil {
		return false, errors.Wrapf(client.IgnoreNotFound(err), "cannot read Edge %s", key.Name)
	}
	return e.Spec.ForProvider.Identity == r.Spec.Identity && e.DeletionTimestamp == nil, nil
}

// within what is still to be cleaned: not a cluster that was given up, or whose context is gone.
func (t *tidier) within(ctx context.Context, r *v1alpha1.EdgeRemainder) (*cleaner, error) {
	c := t.cleaner
	abandoned, err := t.claims.Abandoned(ctx, kit.EnvironmentClaim(r.Spec.Claim), r.Spec.Identity.UID)
	if err != nil {
		return nil, err
	}
	if abandoned {
		c.reach = nil
		return &c, nil
	}
	if r.Spec.Context == steading.PlatformContext {
		return &c, nil
	}
	cluster := &metav1.PartialObjectMetadata{}
	cluster.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterKind))
	_, exists, err := find(ctx, c.system, withName(cluster, names.Context(r.Spec.Identity.Tenant, r.Spec.Context)))
	if !exists {
		c.reach = nil
	}
	return &c, err
}

func withName(m *metav1.PartialObjectMetadata, name string) *metav1.PartialObjectMetadata {
	m.SetNamespace(names.SystemNamespace)
	m.SetName(name)
	return m
}

// report what is left, when it is not what was left before.
func (t *tidier) report(ctx context.Context, r *v1alpha1.EdgeRemainder, l *leftovers, failed error) error {
	left := l.words
	if failed != nil {
		left = append(left, kit.CleanMessage(failed.Error()))
	}
	if slices.Equal(left, r.Status.Left) {
		return nil
	}
	r.Status.Left = left
	return errors.Wrap(client.IgnoreNotFound(t.cleaner.control.Status().Update(ctx, r)), "cannot write what is left")
}

func (t *tidier) end(ctx context.Context, r *v1alpha1.EdgeRemainder, really bool, outcome string) error {
	if !really {
		return nil
	}
	uid := r.UID
	if err := t.cleaner.control.Delete(ctx, r, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return errors.Wrapf(err, "cannot delete EdgeRemainder %s, which is done", r.Name)
	}
	cleanups.WithLabelValues(outcome).Inc()
	return nil
}

// count the remainders, as the cache has them.
func (t *tidier) count(ctx context.Context) {
	l := &v1alpha1.EdgeRemainderList{}
	if err := t.cache.List(ctx, l, client.InNamespace(names.SystemNamespace)); err == nil {
		remainders.Set(float64(len(l.Items)))
	}
}
