package home

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/blockers"
)

// claimKinds that a tenant's owners write, and that are deleted with it when the deletion policy says so. Those of kinds
// that are not served do not exist.
var claimKinds = []string{steading.EnvironmentKind, steading.ContextKind, steading.RunnerPoolKind}

// observeLeaving reports whether there is anything left to wait for or to delete.
func (e *external) observeLeaving(ctx context.Context, h *v1alpha1.Home) (managed.ExternalObservation, error) {
	left, err := e.doomed(ctx, h)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if !left {
		standing, err := e.standing(ctx, h)
		if err != nil {
			return managed.ExternalObservation{}, err
		}
		left = len(standing) > 0
	}
	if !left {
		if left, err = e.systemPartsLeft(ctx, h); err != nil {
			return managed.ExternalObservation{}, err
		}
	}
	return managed.ExternalObservation{ResourceExists: left, ResourceUpToDate: true}, nil
}

// Delete goes one step further each time it is called: first everything of the tenant goes, then the owners' right to
// read the Tenant, then, if the policy says so, the namespace. It is called again as soon as one of these is gone.
func (e *external) Delete(ctx context.Context, h *v1alpha1.Home) (managed.ExternalDelete, error) {
	kit.After(ctx, e.backoff.Next(h.DeletionTimestamp.Time, e.clock.Now()))
	doomed, err := e.doomed(ctx, h)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	if doomed {
		if err := e.deleteClaims(ctx); err != nil {
			return managed.ExternalDelete{}, err
		}
	}
	standing, err := e.standing(ctx, h)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	if len(standing) > 0 {
		return managed.ExternalDelete{}, e.waitFor(ctx, h, standing)
	}
	if err := e.deleteSystemParts(ctx, h); err != nil {
		return managed.ExternalDelete{}, err
	}
	if !deletes(h) {
		e.keep(ctx, h)
		// Looked at once more at once: there is nothing left, so the Home goes.
		kit.After(ctx, atOnce)
		return managed.ExternalDelete{}, e.goesOn(ctx, h)
	}
	if !doomed {
		return managed.ExternalDelete{}, e.goesOn(ctx, h)
	}
	return managed.ExternalDelete{}, e.deleteNamespace(ctx, h)
}

func deletes(h *v1alpha1.Home) bool {
	return h.Spec.ForProvider.Settings.DeletionPolicy == steading.DeletionDelete
}

// doomed reports whether there is a namespace that is to be deleted with the Home: ours, where the policy says so.
func (e *external) doomed(ctx context.Context, h *v1alpha1.Home) (bool, error) {
	if e.ns == nil || !deletes(h) {
		return false, nil
	}
	err := e.claims.Ours(ctx, e.ns, h.Spec.ForProvider.Identity, claimOf(h))
	if errors.As(err, new(*kit.NotOursError)) {
		return false, nil
	}
	return err == nil, err
}

// standing are the managed resources of the tenant that have to go first, and its runner pools: what they are made of is
// another provider's, and is gone when they are.
func (e *external) standing(ctx context.Context, h *v1alpha1.Home) (kit.Standing, error) {
	s, err := e.youngers.Standing(ctx, names.LabelTenant, h.Spec.ForProvider.Identity.Tenant)
	if err != nil {
		return nil, err
	}
	pools, err := e.claimsOf(ctx, steading.RunnerPoolKind, h.Spec.ForProvider.Namespace)
	if err != nil {
		return nil, err
	}
	for i := range pools {
		s = append(s, steading.RunnerPoolKind+" "+pools[i].Name)
	}
	return s, nil
}

// deleteClaims of the tenant that are not being deleted yet. Their namespace stays until what serves them is gone, so that
// their events have a place, and what is still read there is there.
func (e *external) deleteClaims(ctx context.Context) error {
	for _, kind := range claimKinds {
		claims, err := e.claimsOf(ctx, kind, e.ns.Name)
		if err != nil {
			return err
		}
		for i := range claims {
			if claims[i].DeletionTimestamp != nil {
				continue
			}
			if err := client.IgnoreNotFound(e.client.Delete(ctx, &claims[i])); err != nil {
				return errors.Wrapf(err, "cannot delete %s %s/%s", kind, e.ns.Name, claims[i].Name)
			}
		}
	}
	return nil
}

// claimsOf a kind in the tenant's namespace.
func (e *external) claimsOf(ctx context.Context, kind, namespace string) ([]metav1.PartialObjectMetadata, error) {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(steading.GroupVersion.WithKind(kind + "List"))
	err := e.reader.List(ctx, l, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	return l.Items, errors.Wrapf(err, "cannot list the claims of kind %s in namespace %s", kind, namespace)
}

// waitFor says what stands. Where the tenant is to be retained nobody deletes it but its owners, so that deletion is
// blocked; else it goes on.
func (e *external) waitFor(ctx context.Context, h *v1alpha1.Home, standing kit.Standing) error {
	message := fmt.Sprintf("waiting for the deletion of %s", standing)
	if deletes(h) {
		kit.MarkDeletionBlocked(h, steading.ReasonWaitingForYoungers, message)
		return e.claims.Deleting(ctx, claimOf(h))
	}
	return e.blocked(ctx, h, steading.ReasonWaitingForYoungers, message+
		fmt.Sprintf("; the deletion policy is Retain, so delete what the tenant has: kubectl delete environments,contexts,runnerpools --all -n %s", h.Spec.ForProvider.Namespace))
}

// deleteNamespace, and say what holds it up.
func (e *external) deleteNamespace(ctx context.Context, h *v1alpha1.Home) error {
	if e.ns.DeletionTimestamp == nil {
		err := e.client.Delete(ctx, e.ns, client.Preconditions{UID: &e.ns.UID})
		if client.IgnoreNotFound(err) != nil {
			return errors.Wrapf(err, "cannot delete namespace %s", e.ns.Name)
		}
		return e.goesOn(ctx, h)
	}
	f := blockers.Find(ctx, e.ns, e.metadata, e.mapper, e.clock.Now())
	if f.Blocked {
		return e.blocked(ctx, h, steading.ReasonNamespaceBlocked, f.Message(e.ns.Name))
	}
	if f.Settled > 0 {
		kit.After(ctx, f.Settled)
	}
	return e.goesOn(ctx, h)
}

func (e *external) blocked(ctx context.Context, h *v1alpha1.Home, reason xpv2.ConditionReason, message string) error {
	return e.claims.DeletionBlocked(ctx, h, claimOf(h), reason, message)
}

func (e *external) goesOn(ctx context.Context, h *v1alpha1.Home) error {
	kit.MarkDeletionGoesOn(h)
	return e.claims.Deleting(ctx, claimOf(h))
}

// keep says that the namespace stays.
func (e *external) keep(ctx context.Context, h *v1alpha1.Home) {
	if e.ns == nil {
		return
	}
	e.claims.Event(ctx, claimOf(h), event.Normal("NamespaceRetained",
		fmt.Sprintf("namespace %s and what is in it stay, as the deletion policy Retain says", e.ns.Name)))
}

// systemPartsLeft reports whether what the Home made in steading-system is there still.
func (e *external) systemPartsLeft(ctx context.Context, h *v1alpha1.Home) (bool, error) {
	for _, p := range systemPartsOf(h) {
		err := e.reader.Get(ctx, client.ObjectKeyFromObject(p.want), p.live)
		if client.IgnoreNotFound(err) != nil {
			return false, errors.Wrapf(err, "cannot get %s", client.ObjectKeyFromObject(p.want))
		}
		if err == nil && kit.Ours(p.live, h.Spec.ForProvider.Identity, "") == nil {
			return true, nil
		}
	}
	return false, nil
}

func (e *external) deleteSystemParts(ctx context.Context, h *v1alpha1.Home) error {
	for _, p := range systemPartsOf(h) {
		err := e.reader.Get(ctx, client.ObjectKeyFromObject(p.want), p.live)
		if err != nil || kit.Ours(p.live, h.Spec.ForProvider.Identity, "") != nil {
			if client.IgnoreNotFound(err) != nil {
				return errors.Wrapf(err, "cannot get %s", client.ObjectKeyFromObject(p.want))
			}
			continue
		}
		if err := client.IgnoreNotFound(e.client.Delete(ctx, p.live)); err != nil {
			return errors.Wrapf(err, "cannot delete %s", client.ObjectKeyFromObject(p.want))
		}
	}
	return nil
}
