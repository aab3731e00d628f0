package kit

import (
	"context"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// Watch starts to build the controller of a kind: it is woken when what is desired of the object changes, not by
// the controller's own status.
func Watch(mgr manager.Manager, of client.Object, kind string, o Options) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).
		Named("managed/"+strings.ToLower(kind)).
		WithOptions(o.Controller()).
		For(of, builder.WithPredicates(resource.DesiredStateChanged())).
		WatchesRawSource(o.Released(kind))
}

// Reconciler makes a managed reconciler of one kind, whose objects serve a claim, out of the connector to its outside world.
// External names are not recorded, since all of Steading's derive from the spec: that saves every resource a write.
func Reconciler[T resource.Managed](mgr manager.Manager, of schema.GroupVersionKind, o Options, claim func(T) Claim, c managed.TypedExternalConnector[T], extra ...managed.ReconcilerOption) reconcile.Reconciler {
	kind := strings.ToLower(of.Kind)
	opts := append([]managed.ReconcilerOption{
		managed.WithTypedExternalConnector(connector[T]{c}),
		managed.WithInitializers(),
		managed.WithFinalizer(keepStatus{resource.NewAPIFinalizer(noting{mgr}.GetClient(), managed.FinalizerName)}),
		managed.WithDeterministicExternalName(true),
		managed.WithCreationGracePeriod(0),
		managed.WithManagementPolicies(),
		managed.WithPollInterval(o.Poll.Ready),
		managed.WithPollIntervalHook(o.Poll.hook),
		managed.WithMetricRecorder(o.Metrics),
		managed.WithLogger(o.Log.WithValues("controller", kind)),
		managed.WithRecorder(o.Record.WithAnnotations("controller", kind)),
	}, extra...)
	r := managed.NewReconciler(newFrugalManager(noting{mgr}), resource.ManagedKind(of), opts...)
	return ratelimiter.NewReconciler(kind, o.Held(of.Kind, mgr.GetClient(), Itself(mgr, of, claim), WithAfter(r)), o.Limiter)
}

// A look is one reconcile of an object.
type look struct {
	// after is when the object is to be looked at again, zero if nobody said.
	after time.Duration
	// late is whether a write was of something older than what there is.
	late bool
	// began is what was read first, by a reconciler with a [frugal] client.
	began client.Object
}

type lookKey struct{}

// lookOf a context, nil outside of one.
func lookOf(ctx context.Context) *look {
	l, _ := ctx.Value(lookKey{}).(*look)
	return l
}

// After asks that the object at hand is looked at again in d, instead of when the rate limiter would. An external client
// calls it with the context it was given; the last call in a pass counts.
func After(ctx context.Context, d time.Duration) {
	if l := lookOf(ctx); l != nil {
		l.after = d
	}
}

// noted is an error of a write or of an external client, with which nothing else is done than to remember that it was too late.
func noted(ctx context.Context, err error) error {
	if l := lookOf(ctx); l != nil && kerrors.IsConflict(err) {
		l.late = true
	}
	return err
}

// WithAfter lets what r calls use [After]. A reconcile that fails, or one of whose writes was too late, is retried by the rate
// limiter all the same: what it saw has not been told. Crossplane's reconciler drops the errors of such writes, so that they
// cannot be told from success by what it returns.
func WithAfter(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		l := look{}
		res, err := r.Reconcile(context.WithValue(ctx, lookKey{}, &l), req)
		if err == nil && l.after > 0 && !l.late && !res.IsZero() {
			return reconcile.Result{RequeueAfter: l.after}, nil
		}
		return res, err
	})
}

// noting is a manager whose client notes which writes are too late.
type noting struct{ manager.Manager }

// GetClient of the manager.
func (n noting) GetClient() client.Client { return notingClient{n.Manager.GetClient()} }

type notingClient struct{ client.Client }

// Update an object.
func (c notingClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return noted(ctx, c.Client.Update(ctx, obj, opts...))
}

// Status of objects.
func (c notingClient) Status() client.SubResourceWriter { return notingStatus{c.Client.Status()} }

type notingStatus struct{ client.SubResourceWriter }

// Update a status.
func (s notingStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return noted(ctx, s.SubResourceWriter.Update(ctx, obj, opts...))
}

// IsReady reports whether the Ready condition is true.
func IsReady(c resource.Conditioned) bool {
	return c.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
}

// MarkReady says that the managed resource is ready as its present generation asks for.
func MarkReady(mg resource.Managed) {
	mg.SetConditions(xpv2.Available().WithObservedGeneration(mg.GetGeneration()))
}

// MarkNotReady says why the managed resource is not ready.
func MarkNotReady(mg resource.Managed, reason xpv2.ConditionReason, message string) {
	c := xpv2.Unavailable().WithMessage(message).WithObservedGeneration(mg.GetGeneration())
	c.Reason = reason
	mg.SetConditions(c)
}

// MarkDeletionBlocked says what the deletion of the managed resource waits for that will not go away by itself.
func MarkDeletionBlocked(mg resource.Managed, reason xpv2.ConditionReason, message string) {
	mg.SetConditions(xpv2.Condition{
		Type: steading.ConditionDeletionBlocked, Status: corev1.ConditionTrue, Reason: reason, Message: CleanMessage(message),
		LastTransitionTime: metav1.Now(), ObservedGeneration: mg.GetGeneration(),
	})
}

// MarkDeletionGoesOn says that nothing holds the deletion of the managed resource up any more. It reports whether something did.
func MarkDeletionGoesOn(mg resource.Managed) bool {
	if mg.GetCondition(steading.ConditionDeletionBlocked).Status != corev1.ConditionTrue {
		return false
	}
	mg.SetConditions(xpv2.Condition{
		Type: steading.ConditionDeletionBlocked, Status: corev1.ConditionFalse, Reason: xpv2.ReasonDeleting,
		LastTransitionTime: metav1.Now(), ObservedGeneration: mg.GetGeneration(),
	})
	return true
}

// connector cleans the errors of an external client before they reach a condition.
type connector[T resource.Managed] struct {
	managed.TypedExternalConnector[T]
}

func (c connector[T]) Connect(ctx context.Context, mg T) (managed.TypedExternalClient[T], error) {
	e, err := c.TypedExternalConnector.Connect(ctx, mg)
	if err != nil {
		return nil, Clean(noted(ctx, err))
	}
	return external[T]{e}, nil
}

type external[T resource.Managed] struct {
	e managed.TypedExternalClient[T]
}

func (e external[T]) Observe(ctx context.Context, mg T) (managed.ExternalObservation, error) {
	o, err := e.e.Observe(ctx, mg)
	return o, Clean(noted(ctx, err))
}

func (e external[T]) Create(ctx context.Context, mg T) (managed.ExternalCreation, error) {
	c, err := e.e.Create(ctx, mg)
	return c, Clean(noted(ctx, err))
}

func (e external[T]) Update(ctx context.Context, mg T) (managed.ExternalUpdate, error) {
	u, err := e.e.Update(ctx, mg)
	return u, Clean(noted(ctx, err))
}

func (e external[T]) Delete(ctx context.Context, mg T) (managed.ExternalDelete, error) {
	d, err := e.e.Delete(ctx, mg)
	return d, Clean(noted(ctx, err))
}

func (e external[T]) Disconnect(ctx context.Context) error { return Clean(e.e.Disconnect(ctx)) }
