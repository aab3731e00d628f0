package edge

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpevent "github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

const (
	// patience is how long an Edge may take to go. The rest of its environment waits for it.
	patience = time.Minute
	// atOnce is the shortest time after which an Edge is looked at again.
	atOnce = time.Millisecond
)

// observeDeletion says whether something is left and there is time to clean it up. When there is none, it is tried once
// more, since nobody may have been there to try in time; then what is left goes to a remainder, and the Edge goes.
func (e *external) observeDeletion(ctx context.Context, mg *v1alpha1.Edge) (managed.ExternalObservation, error) {
	l := e.cleaner().find(ctx, remainderOf(mg))
	if len(l.words) > 0 && e.timeLeft(mg) > 0 {
		return managed.ExternalObservation{ResourceExists: true}, nil
	}
	if len(l.words) > 0 {
		var err error
		if l, err = e.cleaner().sweep(ctx, remainderOf(mg)); err != nil {
			l.words = append(l.words, kit.CleanMessage(err.Error()))
		}
	}
	if len(l.words) > 0 {
		return managed.ExternalObservation{}, e.leave(ctx, mg, l)
	}
	cleanups.WithLabelValues("clean").Inc()
	return managed.ExternalObservation{}, nil
}

func (e *external) timeLeft(mg *v1alpha1.Edge) time.Duration {
	return mg.DeletionTimestamp.Add(patience).Sub(e.o.Clock.Now())
}

// Delete what can be deleted, and look again when something may have gone, at the latest when time is up.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.Edge) (managed.ExternalDelete, error) {
	l, err := e.cleaner().sweep(ctx, remainderOf(mg))
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	if len(l.words) == 0 {
		kit.After(ctx, atOnce)
	} else {
		kit.After(ctx, max(atOnce, min(settling, e.timeLeft(mg))))
	}
	return managed.ExternalDelete{}, nil
}

func (e *external) cleaner() *cleaner {
	return &cleaner{control: e.control, system: e.system, reach: e.reach}
}

// leave what is left to a remainder.
func (e *external) leave(ctx context.Context, mg *v1alpha1.Edge, l *leftovers) error {
	p := mg.Spec.ForProvider
	r := &v1alpha1.EdgeRemainder{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: names.SystemNamespace,
			Name:      names.EdgeRemainder(p.Identity.Tenant, p.Identity.Environment, string(p.Identity.UID)),
			// Its labels name the environment, but not the composite: nothing is to wait for it.
			Labels: map[string]string{names.LabelTenant: p.Identity.Tenant, names.LabelEnvironment: p.Identity.Environment},
		},
		Spec: remainderOf(mg),
	}
	err := e.control.Create(ctx, r)
	if kerrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot leave what is left to EdgeRemainder %s", r.Name)
	}
	cleanups.WithLabelValues("remainder").Inc()
	e.o.Claims.Event(ctx, kit.EnvironmentClaim(p.Claim), xpevent.Event{
		Type: xpevent.TypeWarning, Reason: v1alpha1.EdgeRemainderKind,
		Message: fmt.Sprintf("what exposed the environment could not be cleaned up within %s; EdgeRemainder %s keeps trying: %s", patience, r.Name, l),
	})
	return nil
}

func remainderOf(mg *v1alpha1.Edge) v1alpha1.EdgeRemainderSpec {
	p := mg.Spec.ForProvider
	return v1alpha1.EdgeRemainderSpec{Identity: p.Identity, Claim: p.Claim, Context: p.Context, Namespace: p.Namespace, Domain: domainOf(p)}
}
