package kit

import (
	"context"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/steading-dev/steading/apis/definitions"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// A hold keeps a controller from reconciling while a definition of what it writes is older than it, or missing. What would have
// been reconciled says so in the condition DefinitionsCurrent, as soon as that is found, and is reconciled as soon as the
// definitions are right.
type hold struct {
	writes []definitions.Kind
	log    logging.Logger
	record event.Recorder
	clock  clock.PassiveClock
	looked <-chan struct{}

	mu      sync.Mutex
	verdict definitions.Verdict
	seen    map[reconcile.Request]struct{}
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Held keeps r, which reconciles objects of a kind, from doing so while its definitions are not current. Its controller watches
// [Options.Released], too.
func (o Options) Held(kind string, c client.Client, of Concerned, r reconcile.Reconciler) reconcile.Reconciler {
	if o.Definitions == nil {
		return r
	}
	h := o.Definitions.hold(kind)
	told := func(ctx context.Context, v definitions.Verdict, req reconcile.Request) (bool, error) {
		return h.tell(ctx, c, o.Claims, v, of, req)
	}
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		select {
		case <-h.looked:
		case <-ctx.Done():
			return reconcile.Result{}, ctx.Err()
		}
		v := h.verdictOn(req)
		told, err := told(ctx, v, req)
		switch {
		case err != nil:
			return reconcile.Result{}, err
		case v.Holds():
			return reconcile.Result{RequeueAfter: definitionsWrongEvery}, nil
		case told:
			// Once the caches have what was written.
			return reconcile.Result{RequeueAfter: firstRetry}, nil
		default:
			return r.Reconcile(ctx, req)
		}
	})
}

// Released is a source of all that the controller of a kind has seen, when it is held or let go.
func (o Options) Released(kind string) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		if o.Definitions == nil {
			return nil
		}
		h := o.Definitions.hold(kind)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.queue = q
		return nil
	})
}

// judge takes a new verdict, and has all that was seen looked at.
func (h *hold) judge(v definitions.Verdict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.verdict == v {
		return
	}
	h.verdict = v
	if v.Holds() {
		h.log.Info("Holding: nothing is reconciled", "reason", v.Reason, "message", v.Message)
	} else {
		h.log.Info("Going on: the definitions are current")
	}
	for r := range h.seen {
		if h.queue != nil {
			h.queue.Add(r)
		}
	}
}

// verdictOn a request, which is remembered.
func (h *hold) verdictOn(r reconcile.Request) definitions.Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[r] = struct{}{}
	return h.verdict
}

// forget a request that concerns nothing any more.
func (h *hold) forget(r reconcile.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.seen, r)
}

// tell the verdict on what a request concerns, and report whether any of it did not say it. One of which nothing was ever wrong
// says nothing.
func (h *hold) tell(ctx context.Context, c client.Client, claims *ClaimReporter, v definitions.Verdict, of Concerned, req reconcile.Request) (told bool, err error) {
	concerns, err := of(ctx, req)
	if err != nil {
		return false, err
	}
	if len(concerns) == 0 {
		h.forget(req)
	}
	want := v.Condition()
	want.LastTransitionTime = metav1.NewTime(h.clock.Now())
	for _, o := range concerns {
		have := o.GetCondition(steading.ConditionDefinitionsCurrent)
		if !v.Holds() && have.Status != "False" {
			continue
		}
		// The claim comes first, since what the object itself says is how we know that all was told.
		if err := o.tellClaim(ctx, claims, v); err != nil {
			return told, err
		}
		if have.Equal(want) {
			continue
		}
		o.SetConditions(want)
		if err := c.Status().Update(ctx, o.Conditioned); client.IgnoreNotFound(err) != nil {
			return told, errors.Wrapf(err, "cannot say on %s whether its definition is current", describe(o.Conditioned))
		}
		told = true
		if v.Holds() {
			h.record.Event(o.Conditioned, event.Warning(event.Reason(v.Reason), errors.New(v.Message)))
		}
	}
	return told, nil
}

// Conditioned is what a hold speaks by: managed resources, and objects that are reconciled without Crossplane's reconciler.
type Conditioned interface {
	client.Object
	resource.Conditioned
}

// A Concern is something that would have been reconciled.
type Concern struct {
	Conditioned
	// Claim that it serves. The zero value: it serves none.
	Claim Claim
}

// tellClaim the verdict while deletion waits for it: nobody else does then. While a claim lives, its composition function says
// what it finds itself.
func (o Concern) tellClaim(ctx context.Context, claims *ClaimReporter, v definitions.Verdict) error {
	if claims == nil || o.Claim == (Claim{}) || o.GetDeletionTimestamp() == nil {
		return nil
	}
	return claims.Judged(ctx, o.Claim, v)
}

// Concerned lists what a request would have reconciled.
type Concerned func(ctx context.Context, r reconcile.Request) ([]Concern, error)

// Itself is the object of a kind that a request names. Claim tells which claim it serves; nil: none.
func Itself[T Conditioned](mgr manager.Manager, of schema.GroupVersionKind, claim func(T) Claim) Concerned {
	return func(ctx context.Context, r reconcile.Request) ([]Concern, error) {
		empty, err := mgr.GetScheme().New(of)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot make a %s", of.Kind)
		}
		o, ok := empty.(T)
		if !ok {
			return nil, errors.Errorf("a %s is a %T, which has no conditions", of.Kind, empty)
		}
		if err := mgr.GetClient().Get(ctx, r.NamespacedName, o); err != nil {
			return nil, errors.Wrapf(client.IgnoreNotFound(err), "cannot read %s %s", of.Kind, r.NamespacedName)
		}
		return []Concern{concern(o, claim)}, nil
	}
}

// OfTenant lists what is of the tenant that a request names. Claim tells which claim each serves.
func OfTenant[T Conditioned](c client.Reader, empty func() resource.ManagedList, claim func(T) Claim) Concerned {
	return func(ctx context.Context, r reconcile.Request) ([]Concern, error) {
		l := empty()
		err := c.List(ctx, l, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelTenant: r.Name})
		all := make([]Concern, 0, len(l.GetItems()))
		for _, item := range l.GetItems() {
			if o, ok := item.(T); ok {
				all = append(all, concern(o, claim))
			}
		}
		return all, errors.Wrapf(err, "cannot list what is of tenant %s", r.Name)
	}
}

// NoneConcerned is for kinds whose objects have no conditions to say anything by.
func NoneConcerned(context.Context, reconcile.Request) ([]Concern, error) { return nil, nil }

func concern[T Conditioned](o T, claim func(T) Claim) Concern {
	c := Concern{Conditioned: o}
	if claim != nil {
		c.Claim = claim(o)
	}
	return c
}
