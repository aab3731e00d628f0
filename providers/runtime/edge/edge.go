package edge

import (
	"context"
	stderrors "errors"
	"time"

	crossplane "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// settling is how long what was written may take to be seen.
const settling = time.Second

// notYet is when a cluster is tried again whose Context was not looked at yet.
const notYet = 2 * time.Second

// An installer knows which operators' kinds the control plane serves.
type installer interface {
	Installed(ctx context.Context, kind schema.GroupVersionKind) (bool, error)
}

// external is one Edge's two sides.
type external struct {
	o         kit.Options
	control   client.Client
	system    client.Reader // uncached
	cache     client.Reader
	operators installer
	reach     reach

	// todo is what Observe found to differ, for Create and Update.
	todo []change
}

var _ managed.TypedExternalClient[*v1alpha1.Edge] = &external{}

// Observe looks at both sides and tells the verdicts. An Edge always exists: what is not there differs from what should be.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.Edge) (managed.ExternalObservation, error) {
	if crossplane.WasDeleted(mg) {
		return e.observeDeletion(ctx, mg)
	}
	p := mg.Spec.ForProvider
	pl, err := e.reach(ctx, target.NameOf(p.Identity.Tenant, p.Context), p.Namespace)
	if stderrors.Is(err, target.ErrNotYet) {
		// What was said of it before stays said.
		kit.After(ctx, notYet)
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}
	unreached, err := asProblem(err)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if unreached != nil {
		pl = nil
	}
	services, refused, err := e.admit(ctx, mg, pl)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	records, unnamed, err := e.lookAtRecords(ctx, p, services)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	is, err := e.lookAtCertificate(ctx, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	in := &inside{problem: unreached, hosts: held(mg, services)}
	if pl != nil {
		if in, err = e.lookInside(ctx, mg, pl, services, is.source); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	certified := is.problem
	if certified == nil && !in.copied {
		certified = first(in.uncopied, in.problem, issuing)
	}
	e.tell(ctx, mg, v1alpha1.EdgeObservation{
		Hosts:       in.hosts,
		Exposed:     first(refused, in.problem, unnamed).verdict(steading.ReasonExposed),
		Certificate: certified.verdict(steading.ReasonIssued),
	}, is.asked)
	e.todo = append(append(records, is.todo...), in.todo...)
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: len(e.todo) == 0}, nil
}

// ours asks whether something that exists is the environment's own.
func (e *external) ours(ctx context.Context, obj client.Object, p v1alpha1.EdgeParameters) error {
	return e.o.Claims.Ours(ctx, obj, p.Identity, kit.EnvironmentClaim(p.Claim))
}

// Create is never called.
func (e *external) Create(context.Context, *v1alpha1.Edge) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, nil
}

// Update makes what Observe found to differ.
func (e *external) Update(ctx context.Context, _ *v1alpha1.Edge) (managed.ExternalUpdate, error) {
	for _, c := range e.todo {
		if err := c.make(ctx); err != nil {
			return managed.ExternalUpdate{}, err
		}
	}
	kit.After(ctx, settling)
	return managed.ExternalUpdate{}, nil
}

// Disconnect does nothing.
func (e *external) Disconnect(context.Context) error { return nil }
