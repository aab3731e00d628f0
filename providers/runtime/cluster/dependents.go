package cluster

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// dependents of a Cluster are the parts of environments that name its context.
type dependents struct {
	// names of all of them.
	names kit.Standing
	// staying are the environments of those that are not being deleted.
	staying kit.Standing
}

// dependents that exist, read uncached.
func (e *external) dependents(ctx context.Context, mg *v1alpha1.Cluster) (dependents, error) {
	p := mg.Spec.ForProvider
	var found dependents
	for _, l := range []client.ObjectList{&v1alpha1.PlacementList{}, &v1alpha1.BoundaryList{}, &v1alpha1.ReleaseList{}, &v1alpha1.EdgeList{}} {
		err := e.reader.List(ctx, l, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelTenant: p.Identity.Tenant})
		if err != nil {
			return dependents{}, errors.Wrap(err, "cannot list what is on the context")
		}
		for _, o := range objectsOf(l) {
			found.add(o, p.Context)
		}
	}
	slices.Sort(found.names)
	slices.Sort(found.staying)
	found.staying = slices.Compact(found.staying)
	return found, nil
}

func (d *dependents) add(o client.Object, context string) {
	at, kind := contextOf(o)
	if at != context {
		return
	}
	d.names = append(d.names, kind+" "+o.GetName())
	if o.GetDeletionTimestamp() == nil {
		d.staying = append(d.staying, o.GetLabels()[names.LabelEnvironment])
	}
}

// contextOf is the context that an object is on, and what the object is.
func contextOf(o client.Object) (context, kind string) {
	switch o := o.(type) {
	case *v1alpha1.Placement:
		if g := o.Status.AtProvider.Grant; g != nil {
			context = g.Context
		}
		return context, v1alpha1.PlacementKind
	case *v1alpha1.Boundary:
		return o.Spec.ForProvider.Context, v1alpha1.BoundaryKind
	case *v1alpha1.Release:
		return o.Spec.ForProvider.Context, v1alpha1.ReleaseKind
	case *v1alpha1.Edge:
		return o.Spec.ForProvider.Context, v1alpha1.EdgeKind
	}
	return "", ""
}

func objectsOf(l client.ObjectList) []client.Object {
	var all []client.Object
	switch l := l.(type) {
	case *v1alpha1.PlacementList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *v1alpha1.BoundaryList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *v1alpha1.ReleaseList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *v1alpha1.EdgeList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	}
	return all
}

// enqueueContextOf wakes the Cluster of the context that an object is on.
func enqueueContextOf() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		context, _ := contextOf(o)
		tenant := o.GetLabels()[names.LabelTenant]
		if context == "" || tenant == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: names.SystemNamespace, Name: names.Context(tenant, context)}}}
	})
}
