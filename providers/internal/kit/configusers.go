package kit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpevent "github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A configKeeper keeps configs of a kind that are being deleted while managed resources name them. Usages are not enough for
// that: deletion of a claim is in the foreground, so that the garbage collector takes the usages before the managed resources
// that own them, which need what the config allows until they are gone.
type configKeeper struct {
	of     schema.GroupVersionKind
	client client.Client
	record xpevent.Recorder
	// then reconciles what nobody keeps.
	then reconcile.Reconciler
}

// Reconcile a config.
func (k configKeeper) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o, err := k.client.Scheme().New(k.of)
	if err != nil {
		return reconcile.Result{}, errors.Wrapf(err, "cannot make a %s", k.of.Kind)
	}
	config, ok := o.(resource.ProviderConfig)
	if !ok {
		return reconcile.Result{}, errors.Errorf("a %s is a %T, which is no config of a provider", k.of.Kind, o)
	}
	if err := k.client.Get(ctx, req.NamespacedName, config); err != nil {
		return reconcile.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "cannot read %s %s", k.of.Kind, req.Name)
	}
	if !meta.WasDeleted(config) {
		return k.then.Reconcile(ctx, req)
	}
	users, err := k.users(ctx, req)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(users) == 0 {
		return k.then.Reconcile(ctx, req)
	}
	return reconcile.Result{}, k.tell(ctx, config, users)
}

// users of the config that a request names, among them those that are being deleted.
func (k configKeeper) users(ctx context.Context, config reconcile.Request) ([]string, error) {
	var users []string
	for _, kind := range configuredKinds(k.client.Scheme(), k.of.GroupVersion()) {
		o, err := k.client.Scheme().New(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err != nil {
			return nil, errors.Wrapf(err, "cannot make a list of the kind %s", kind.Kind)
		}
		l, ok := o.(resource.ManagedList)
		if !ok {
			return nil, errors.Errorf("a list of the kind %s is a %T, which has no managed resources", kind.Kind, o)
		}
		if err := k.client.List(ctx, l, client.InNamespace(config.Namespace)); err != nil {
			return nil, errors.Wrapf(err, "cannot list the kind %s, which may use %s %s", kind.Kind, k.of.Kind, config.Name)
		}
		for _, mg := range l.GetItems() {
			if slices.Contains(k.named(mg), config) {
				users = append(users, describe(mg))
			}
		}
	}
	slices.Sort(users)
	return users, nil
}

// tell the users of a config that is being deleted what keeps it.
func (k configKeeper) tell(ctx context.Context, config resource.ProviderConfig, users []string) error {
	before := config.GetCondition(providerconfig.TypeTerminating)
	now := providerconfig.Terminating().WithMessage(fmt.Sprintf(
		"it is kept until the managed resources that name it are gone: %d, such as %s", len(users), users[0]))
	config.SetUsers(int64(len(users)))
	config.SetConditions(now)
	if err := k.client.Status().Update(ctx, config); err != nil {
		return errors.Wrapf(client.IgnoreNotFound(err), "cannot say on %s what keeps it", describe(config))
	}
	if before.Status != corev1.ConditionTrue {
		k.record.Event(config, xpevent.Warning(xpevent.Reason(now.Reason), errors.New(now.Message)))
	}
	return nil
}

// named is the config of the kept kind that a managed resource names, if any.
func (k configKeeper) named(o client.Object) []reconcile.Request {
	mg, ok := o.(resource.ModernManaged)
	if !ok {
		return nil
	}
	ref := mg.GetProviderConfigReference()
	// A reference that names no kind is to a ProviderConfig, as crossplane-runtime has it.
	if ref == nil || cmp.Or(ref.Kind, "ProviderConfig") != k.of.Kind {
		return nil
	}
	r := reconcile.Request{NamespacedName: client.ObjectKey{Name: ref.Name}}
	if k.of.Kind == "ProviderConfig" {
		r.Namespace = o.GetNamespace()
	}
	return []reconcile.Request{r}
}

// woken enqueues the configs that managed resources name which come, go or change over.
func (k configKeeper) woken() handler.EventHandler {
	return together{handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request { return k.named(o) })}
}

// changesOver passes managed resources that come, go or name another config than before.
func (k configKeeper) changesOver() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !slices.Equal(k.named(e.ObjectOld), k.named(e.ObjectNew))
	}}
}

// configuredKinds are the kinds of a group and version whose objects name a config.
func configuredKinds(s *runtime.Scheme, gv schema.GroupVersion) []schema.GroupVersionKind {
	return slices.DeleteFunc(KindsOf(s, gv), func(k schema.GroupVersionKind) bool {
		o, err := s.New(k)
		if err != nil {
			return true
		}
		_, configured := o.(resource.ModernManaged)
		return !configured
	})
}
