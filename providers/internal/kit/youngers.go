package kit

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// Youngers are the managed resources that an elder waits for before it goes: a Boundary's are the Releases of its
// environment, a Home's all that its tenant has.
type Youngers struct {
	// Reader that does not cache: a younger that was made a moment ago counts.
	Reader client.Reader
	// Kinds to wait for. A kind that the API server does not serve has no objects.
	Kinds []schema.GroupVersionKind
	// ByClaim names the youngers by the claims that they serve, as people who may not read steading-system know them.
	ByClaim bool
}

// Standing lists the youngers in steading-system that still exist and carry the label, as "<kind> <name>", sorted, each once.
// The label is [names.LabelComposite] with the composite's UID, or [names.LabelTenant] with the tenant's name.
func (y Youngers) Standing(ctx context.Context, label, value string) (Standing, error) {
	var s Standing
	err := y.each(ctx, label, value, func(what string, _ *metav1.PartialObjectMetadata) { s = append(s, what) })
	slices.Sort(s)
	return slices.Compact(s), err
}

// StandingBefore lists the youngers as Standing does, but for those that were made after the elder's deletion had begun and
// are not being deleted themselves: where the elder is deleted alone, its composite makes a younger that went anew at once,
// and that one waits for the next elder. Times have whole seconds; what is of the same second counts as after.
func (y Youngers) StandingBefore(ctx context.Context, elder metav1.Object, label, value string) (Standing, error) {
	var s Standing
	err := y.each(ctx, label, value, func(what string, o *metav1.PartialObjectMetadata) {
		going := elder.GetDeletionTimestamp()
		if o.DeletionTimestamp == nil && going != nil && !o.CreationTimestamp.Before(going) {
			return
		}
		s = append(s, what)
	})
	slices.Sort(s)
	return s, err
}

// StandingBy lists the youngers as Standing does, for each value of another of their labels: all that stand of a tenant,
// by composite.
func (y Youngers) StandingBy(ctx context.Context, label, value, by string) (map[string]Standing, error) {
	all := map[string]Standing{}
	err := y.each(ctx, label, value, func(what string, o *metav1.PartialObjectMetadata) {
		key := o.GetLabels()[by]
		all[key] = append(all[key], what)
	})
	for _, s := range all {
		slices.Sort(s)
	}
	return all, err
}

// each calls f with each younger that exists and carries the label.
func (y Youngers) each(ctx context.Context, label, value string, f func(what string, o *metav1.PartialObjectMetadata)) error {
	for _, kind := range y.Kinds {
		l := &metav1.PartialObjectMetadataList{}
		l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := y.Reader.List(ctx, l, client.InNamespace(names.SystemNamespace), client.MatchingLabels{label: value})
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return errors.Wrapf(err, "cannot list the kind %s, which is to go first", kind.Kind)
		}
		for i := range l.Items {
			f(y.name(kind.Kind, &l.Items[i]), &l.Items[i])
		}
	}
	return nil
}

func (y Youngers) name(kind string, o metav1.Object) string {
	if y.ByClaim {
		if n := o.GetLabels()[names.LabelEnvironment]; n != "" {
			return steading.EnvironmentKind + " " + n
		}
		if n := o.GetLabels()[names.LabelContext]; n != "" {
			return steading.ContextKind + " " + n
		}
	}
	return kind + " " + o.GetName()
}

// Standing are objects that are to go first.
type Standing []string

// String names at most three of them.
func (s Standing) String() string {
	const most = 3
	if len(s) <= most {
		return strings.Join(s, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(s[:most], ", "), len(s)-most)
}

// Gone passes the events that may let an elder go on: a younger was deleted, or lost a finalizer.
func Gone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return len(e.ObjectNew.GetFinalizers()) < len(e.ObjectOld.GetFinalizers())
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return true },
		GenericFunc: func(event.GenericEvent) bool { return true },
	}
}

// EnqueueEnvironment wakes the part that has the name of the environment that a younger's labels name, in steading-system.
func EnqueueEnvironment() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		tenant, environment := o.GetLabels()[names.LabelTenant], o.GetLabels()[names.LabelEnvironment]
		if tenant == "" || environment == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: names.SystemNamespace, Name: names.Environment(tenant, environment)}}}
	})
}

// EnqueueTenant wakes what has the name of the tenant that an object's label names, in steading-system.
func EnqueueTenant() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		tenant := o.GetLabels()[names.LabelTenant]
		if tenant == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: names.SystemNamespace, Name: names.Home(tenant)}}}
	})
}

// describe names an object by kind, which the Go type gives when the object itself does not say, and by name.
func describe(obj client.Object) string {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.Indirect(reflect.ValueOf(obj)).Type().Name()
	}
	if obj.GetNamespace() == "" {
		return kind + " " + obj.GetName()
	}
	return kind + " " + obj.GetNamespace() + "/" + obj.GetName()
}
