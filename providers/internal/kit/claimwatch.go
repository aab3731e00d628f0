package kit

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// WatchEnvironmentClaims wakes the managed resource of an Environment when an operator lets it adopt something or
// abandons its target. Only the claims' metadata is cached.
func WatchEnvironmentClaims(b *builder.Builder) *builder.Builder {
	return WatchEnvironmentClaimsFor(b, func(_ context.Context, tenant, environment string) []string {
		return []string{names.Environment(tenant, environment)}
	})
}

// WatchEnvironmentClaimsFor does the same for several managed resources of an Environment, by name.
func WatchEnvironmentClaimsFor(b *builder.Builder, of func(ctx context.Context, tenant, environment string) []string) *builder.Builder {
	return watchClaims(b, &steading.Environment{}, func(ctx context.Context, o client.Object) []string {
		tenant, ok := names.TenantOf(o.GetNamespace())
		if !ok {
			return nil
		}
		return of(ctx, tenant, o.GetName())
	})
}

// WatchTenantClaims does the same for the managed resource of a Tenant.
func WatchTenantClaims(b *builder.Builder) *builder.Builder {
	return watchClaims(b, &steading.Tenant{}, func(_ context.Context, o client.Object) []string { return []string{names.Home(o.GetName())} })
}

// WatchContextClaims does the same for the managed resource of a Context.
func WatchContextClaims(b *builder.Builder) *builder.Builder {
	return watchClaims(b, &steading.Context{}, func(_ context.Context, o client.Object) []string {
		tenant, ok := names.TenantOf(o.GetNamespace())
		if !ok {
			return nil
		}
		return []string{names.Context(tenant, o.GetName())}
	})
}

// WatchRunnerPoolClaims does the same for the managed resources of a RunnerPool, by name.
func WatchRunnerPoolClaims(b *builder.Builder, of func(ctx context.Context, tenant, pool string) []string) *builder.Builder {
	return watchClaims(b, &steading.RunnerPool{}, func(ctx context.Context, o client.Object) []string {
		tenant, ok := names.TenantOf(o.GetNamespace())
		if !ok {
			return nil
		}
		return of(ctx, tenant, o.GetName())
	})
}

func watchClaims(b *builder.Builder, of client.Object, woken func(context.Context, client.Object) []string) *builder.Builder {
	to := func(ctx context.Context, o client.Object) []reconcile.Request {
		var all []reconcile.Request
		for _, n := range woken(ctx, o) {
			all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: names.SystemNamespace, Name: n}})
		}
		return all
	}
	return b.WatchesMetadata(of, handler.EnqueueRequestsFromMapFunc(to), builder.WithPredicates(operatorSpoke()))
}

// operatorSpoke passes changes of the annotations with which an operator decides about a claim.
func operatorSpoke() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			for _, a := range []string{names.AnnotationAdoptFrom, names.AnnotationAbandon} {
				if e.ObjectOld.GetAnnotations()[a] != e.ObjectNew.GetAnnotations()[a] {
					return true
				}
			}
			return false
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
