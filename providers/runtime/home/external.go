package home

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/blockers"
)

// fieldOwner of what is applied.
const fieldOwner = names.ProviderRuntime

// recount is how long the API server may take to count what a quota is about. One that was made before it had learned of
// the kind is looked at again after five minutes only, unless it is made anew.
const recount = 5 * time.Second

// connector makes an external client for each look at a Home.
type connector struct {
	client   client.Client
	reader   client.Reader // uncached
	claims   *kit.ClaimReporter
	youngers kit.Youngers
	backoff  kit.Backoff
	clock    clock.PassiveClock
	// metadata and mapper name what is left in a namespace.
	metadata metadata.Interface
	mapper   blockers.ResourceMapper
}

// Connect to the control plane's own cluster, which takes no credential of its own.
func (c *connector) Connect(context.Context, *v1alpha1.Home) (managed.TypedExternalClient[*v1alpha1.Home], error) {
	return &external{connector: c}, nil
}

// external is one look at a Home's namespace.
type external struct {
	*connector
	ns    *corev1.Namespace // nil: there is none
	stale []part            // missing or not as wanted
	stuck []part            // stale ones that the API server does nothing about until they are made anew
}

// Disconnect does nothing.
func (e *external) Disconnect(context.Context) error { return nil }

// Observe the namespace and all that belongs in it.
func (e *external) Observe(ctx context.Context, h *v1alpha1.Home) (managed.ExternalObservation, error) {
	if err := e.readNamespace(ctx, h.Spec.ForProvider.Namespace); err != nil {
		return managed.ExternalObservation{}, err
	}
	if meta.WasDeleted(h) {
		return e.observeLeaving(ctx, h)
	}
	if e.ns == nil {
		h.Status.AtProvider.Namespace = ""
		return managed.ExternalObservation{}, nil
	}
	if err := e.claims.Ours(ctx, e.ns, h.Spec.ForProvider.Identity, claimOf(h)); err != nil {
		kit.MarkNotReady(h, steading.ReasonForeignNamespace, err.Error())
		return managed.ExternalObservation{}, err
	}
	if e.ns.DeletionTimestamp != nil {
		kit.MarkNotReady(h, steading.ReasonNamespaceBlocked, fmt.Sprintf("namespace %s is being deleted by someone else; it is made anew once it is gone", e.ns.Name))
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}
	return e.observeParts(ctx, h)
}

func (e *external) observeParts(ctx context.Context, h *v1alpha1.Home) (managed.ExternalObservation, error) {
	parts := partsOf(h)
	var err error
	if e.stale, err = e.staleOf(ctx, h, parts); err != nil {
		return managed.ExternalObservation{}, err
	}
	h.Status.AtProvider.Namespace = e.ns.Name
	upToDate := len(e.stale) == 0 && stamped(e.ns, h)
	if upToDate {
		upToDate = e.markReady(ctx, h, parts)
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: upToDate}, nil
}

func (e *external) readNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{}
	switch err := e.reader.Get(ctx, client.ObjectKey{Name: name}, ns); {
	case kerrors.IsNotFound(err):
		e.ns = nil
	case err != nil:
		return errors.Wrapf(err, "cannot get namespace %s", name)
	default:
		e.ns = ns
	}
	return nil
}

// staleOf are the parts that are missing or not as wanted.
func (e *external) staleOf(ctx context.Context, h *v1alpha1.Home, parts []part) ([]part, error) {
	var stale []part
	for _, p := range parts {
		err := e.reader.Get(ctx, client.ObjectKeyFromObject(p.want), p.live)
		if client.IgnoreNotFound(err) != nil {
			return nil, errors.Wrapf(err, "cannot get %s %s", p.want.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(p.want))
		}
		if err != nil || !p.same() || !kit.Stamped(p.live, h.Spec.ForProvider.Identity) {
			stale = append(stale, p)
		}
	}
	return stale, nil
}

// Create the namespace and all that belongs in it. A namespace that somebody else made in the meantime is an error here
// and looked at the next time.
func (e *external) Create(ctx context.Context, h *v1alpha1.Home) (managed.ExternalCreation, error) {
	ns := namespaceOf(h)
	if err := e.client.Create(ctx, ns); err != nil {
		return managed.ExternalCreation{}, errors.Wrapf(err, "cannot make namespace %s", ns.Name)
	}
	return managed.ExternalCreation{}, e.apply(ctx, partsOf(h))
}

// Update what is missing or not as wanted.
func (e *external) Update(ctx context.Context, h *v1alpha1.Home) (managed.ExternalUpdate, error) {
	if !stamped(e.ns, h) {
		from := client.MergeFromWithOptions(e.ns.DeepCopy(), client.MergeFromWithOptimisticLock{})
		stampNamespace(e.ns, h)
		if err := e.client.Patch(ctx, e.ns, from); err != nil {
			return managed.ExternalUpdate{}, errors.Wrapf(err, "cannot label namespace %s", e.ns.Name)
		}
	}
	for _, p := range e.stuck {
		uid := p.live.GetUID()
		if err := e.client.Delete(ctx, p.live, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return managed.ExternalUpdate{}, errors.Wrapf(err, "cannot make %s anew", p.live.GetName())
		}
	}
	if err := e.apply(ctx, e.stale); err != nil {
		return managed.ExternalUpdate{}, err
	}
	e.markReady(ctx, h, e.stale)
	return managed.ExternalUpdate{}, nil
}

// markReady unless the API server still has to do something about a part. It returns false when that part has to be made
// anew, which Update then does.
func (e *external) markReady(ctx context.Context, h *v1alpha1.Home, parts []part) bool {
	for _, p := range parts {
		missing := p.missing()
		if missing == "" {
			continue
		}
		kit.MarkNotReady(h, xpv2.ReasonCreating, missing)
		kit.After(ctx, recount)
		if made := p.live.GetCreationTimestamp(); !made.IsZero() && e.clock.Since(made.Time) >= recount {
			e.stale, e.stuck = append(e.stale, p), append(e.stuck, p)
			return false
		}
		return true
	}
	kit.MarkReady(h)
	return true
}

func (e *external) apply(ctx context.Context, parts []part) error {
	for _, p := range parts {
		if err := kit.Apply(ctx, e.client, p.want, fieldOwner); err != nil {
			return err
		}
	}
	return nil
}
