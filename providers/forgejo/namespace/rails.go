package namespace

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/internal/referred"
)

// A rail is one object that holds runners in.
type rail struct {
	want client.Object
	// have is an empty object to read the one that there is into.
	have client.Object
	// same reports whether what matters of have is as wanted.
	same func() bool
	// repair makes have as it is wanted.
	repair func()
	// anew is whether have can become what is wanted only by being made anew.
	anew func() bool
}

// rails of a namespace, the provider's own right first: by that it makes the others.
func rails(tenant, ns string, most int64) []rail {
	all := []rail{spawner(ns), account(ns), quota(ns, most), network(ns)}
	for _, r := range all {
		stamp(r.want, tenant)
	}
	return all
}

// stamp what is a tenant's, and of no one pool.
func stamp(o client.Object, tenant string) {
	kit.Stamp(o, runtimev1.Identity{Tenant: tenant})
	for _, m := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		delete(m, names.LabelComposite)
	}
}

// ours reports whether the guard made an object for a tenant.
func ours(o client.Object, tenant string) bool {
	return kit.Stamped(o, runtimev1.Identity{Tenant: tenant})
}

func meta(ns, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }

// spawner is the provider's right to make runners.
func spawner(ns string) rail {
	want := referred.Right(names.ProviderForgejo, ns, names.RunnerSpawner, names.RunnerSpawnerRole, runtimev1.Identity{})
	have := &rbacv1.RoleBinding{}
	return rail{
		want: want, have: have,
		same: func() bool {
			return have.RoleRef == want.RoleRef && equality.Semantic.DeepEqual(have.Subjects, want.Subjects)
		},
		repair: func() { have.Subjects = want.Subjects },
		anew:   func() bool { return have.RoleRef != want.RoleRef },
	}
}

// account of the runners' pods. It has no rights, and no token of it is mounted.
func account(ns string) rail {
	want := &corev1.ServiceAccount{
		TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta:                   meta(ns, names.RunnerAccount),
		AutomountServiceAccountToken: ptr.To(false),
	}
	have := &corev1.ServiceAccount{}
	return rail{
		want: want, have: have,
		same: func() bool {
			return equality.Semantic.DeepEqual(have.AutomountServiceAccountToken, want.AutomountServiceAccountToken)
		},
		repair: func() { have.AutomountServiceAccountToken = want.AutomountServiceAccountToken },
	}
}

// quota of as many pods as there may be runners. It is the last line: pools count for themselves.
func quota(ns string, most int64) rail {
	want := &corev1.ResourceQuota{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"},
		ObjectMeta: meta(ns, names.RunnerGuard),
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(most, resource.DecimalSI)}},
	}
	have := &corev1.ResourceQuota{}
	return rail{
		want: want, have: have,
		same:   func() bool { return equality.Semantic.DeepEqual(have.Spec, want.Spec) },
		repair: func() { have.Spec = want.Spec },
	}
}

// network lets nobody in to runners, and runners out to everything but addresses where clouds and nodes give their own
// credentials away.
func network(ns string) rail {
	want := &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: meta(ns, names.RunnerGuard),
		Spec: networkingv1.NetworkPolicySpec{
			// What an operator runs beside them, as a cache, is not a runner.
			PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: names.LabelRunner, Operator: metav1.LabelSelectorOpExists}}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Egress:      address.Egress(),
		},
	}
	have := &networkingv1.NetworkPolicy{}
	return rail{
		want: want, have: have,
		same:   func() bool { return equality.Semantic.DeepEqual(have.Spec, want.Spec) },
		repair: func() { have.Spec = want.Spec },
	}
}

// putUp the guard rails, or repair them.
func (g *Guard) putUp(ctx context.Context, tenant, ns string, most int64) error {
	delete(g.stood, ns)
	delete(g.down, ns)
	for _, r := range rails(tenant, ns, most) {
		made, err := g.put(ctx, tenant, r)
		if err != nil {
			return err
		}
		if _, right := r.want.(*rbacv1.RoleBinding); right && made {
			if err := g.known(ctx, ns); err != nil {
				return err
			}
		}
	}
	return nil
}

// put up one rail, and report whether it was not there before.
func (g *Guard) put(ctx context.Context, tenant string, r rail) (made bool, err error) {
	what, key := r.want.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(r.want)
	err = g.uncached.Get(ctx, key, r.have)
	switch {
	case kerrors.IsNotFound(err):
		// Not applied: that would take over what somebody made since it was looked for.
		return true, errors.Wrapf(g.client.Create(ctx, r.want), "cannot make %s %s", what, key)
	case err != nil:
		return false, errors.Wrapf(err, "cannot read %s %s", what, key)
	case !ours(r.have, tenant):
		return false, errors.Errorf("%s %s exists and was not made for the runners of tenant %s, so it is not changed: ask an operator to delete it", what, key, tenant)
	case r.same():
		return false, nil
	case r.anew != nil && r.anew():
		if err := g.remove(ctx, r.have); err != nil {
			return false, err
		}
		return true, errors.Wrapf(g.client.Create(ctx, r.want), "cannot make %s %s", what, key)
	}
	before, ok := r.have.DeepCopyObject().(client.Object)
	if !ok {
		return false, errors.Errorf("%T is not an object", r.have)
	}
	r.repair()
	// Not applied: that would leave what others added, as who may reach runners.
	err = g.client.Patch(ctx, r.have, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return false, errors.Wrapf(err, "cannot repair %s %s", what, key)
}

// known waits until the API server knows of the right that was just given.
func (g *Guard) known(ctx context.Context, ns string) error {
	for range tries {
		err := g.uncached.Get(ctx, client.ObjectKey{Namespace: ns, Name: names.RunnerGuard}, &corev1.ResourceQuota{})
		if !kerrors.IsForbidden(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-g.clock.After(between):
		}
	}
	return errors.New("the provider may not make runners there yet")
}

// takeDown the guard rails that are ours, the provider's own right last. Where it has none there is nothing left that is ours.
func (g *Guard) takeDown(ctx context.Context, tenant, ns string) error {
	delete(g.stood, ns)
	all := rails(tenant, ns, 0)
	right := all[0]
	if err := g.uncached.Get(ctx, client.ObjectKeyFromObject(right.want), right.have); err != nil {
		return errors.Wrapf(unlessRefused(err), "cannot read RoleBinding %s/%s", ns, right.want.GetName())
	}
	for _, r := range append(all[1:], right) {
		err := g.uncached.Get(ctx, client.ObjectKeyFromObject(r.want), r.have)
		if err == nil && ours(r.have, tenant) {
			err = g.remove(ctx, r.have)
		}
		if err = unlessRefused(err); err != nil {
			return errors.Wrapf(err, "cannot take down %s %s/%s", r.want.GetObjectKind().GroupVersionKind().Kind, ns, r.want.GetName())
		}
	}
	return nil
}

func (g *Guard) remove(ctx context.Context, o client.Object) error {
	return client.IgnoreNotFound(g.client.Delete(ctx, o, client.Preconditions{UID: ptr.To(o.GetUID())}))
}

// unlessRefused is an error, nil if it says that there is nothing, or no right to it: in a namespace that goes neither is left.
func unlessRefused(err error) error {
	if kerrors.IsNotFound(err) || kerrors.IsForbidden(err) {
		return nil
	}
	return err
}
