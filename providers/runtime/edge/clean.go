package edge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// A cleaner deletes what an Edge made. It goes by the identity that objects carry, so that it finds what an Edge of another
// zone, or with other services, made before.
type cleaner struct {
	control client.Client
	system  client.Reader // uncached
	// reach of the environment's namespace. Nil: it was given up.
	reach reach
}

// leftovers are what is left of an Edge.
type leftovers struct {
	// deletable objects, and as whom.
	deletable []change
	// what is left, sorted: objects with their finalizers, and what could not be looked at.
	words []string
}

func (l *leftovers) add(as client.Client, obj client.Object) {
	l.say(obj)
	if obj.GetDeletionTimestamp() == nil {
		l.deletable = append(l.deletable, change{as: as, have: obj})
	}
}

// say that an object is left which others delete, or which is being deleted.
func (l *leftovers) say(obj client.Object) {
	word := called(obj)
	if fs := obj.GetFinalizers(); len(fs) > 0 {
		word += " (finalizers: " + strings.Join(fs, ", ") + ")"
	}
	l.words = append(l.words, word)
}

// String names at most three of them.
func (l *leftovers) String() string {
	const most = 3
	if len(l.words) <= most {
		return strings.Join(l.words, "; ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(l.words[:most], "; "), len(l.words)-most)
}

// find what is left on both sides. What cannot be looked at is left as a whole; that is no error.
func (c *cleaner) find(ctx context.Context, r v1alpha1.EdgeRemainderSpec) *leftovers {
	l := &leftovers{}
	for _, err := range []error{c.findInside(ctx, r, l), c.findOutside(ctx, r, l)} {
		if err != nil {
			l.words = append(l.words, kit.CleanMessage(err.Error()))
		}
	}
	slices.Sort(l.words)
	return l
}

// findInside finds what is left in the environment's namespace. With the namespace all of it goes, and the Boundary waits for
// that.
func (c *cleaner) findInside(ctx context.Context, r v1alpha1.EdgeRemainderSpec, l *leftovers) error {
	if c.reach == nil {
		return nil
	}
	pl, err := c.reach(ctx, target.NameOf(r.Identity.Tenant, r.Context), r.Namespace)
	if err != nil {
		return err
	}
	if pl.namespace == nil || pl.namespace.DeletionTimestamp != nil {
		return nil
	}
	if id, _ := kit.IdentityOf(pl.namespace); id != r.Identity {
		return nil // Somebody else's by now.
	}
	if pl.deployer == nil {
		return errors.Errorf("cannot look for routes in namespace %s: it has no account %s", r.Namespace, names.Deployer)
	}
	for _, kind := range []schema.GroupVersionKind{ingressKind, httpRouteKind, secretKind} {
		if err := list(ctx, pl.deployer, kind, r.Namespace, madeInside(r.Identity), func(o client.Object) { l.add(pl.deployer, o) }); err != nil {
			return err
		}
	}
	if _, ok := pl.namespace.Annotations[names.AnnotationHostSuffix]; ok {
		l.deletable = append(l.deletable, annotate(pl, ""))
		l.words = append(l.words, fmt.Sprintf("annotation %s of %s", names.AnnotationHostSuffix, called(pl.namespace)))
	}
	return nil
}

var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")

// findOutside finds what is left on the control plane. The certificate's Secret goes after the certificate, or cert-manager
// would have it issued again; the challenges go by cert-manager's own hand, which takes their records out of the zone.
func (c *cleaner) findOutside(ctx context.Context, r v1alpha1.EdgeRemainderSpec, l *leftovers) error {
	mine := client.MatchingLabels(kit.Labels(r.Identity))
	certificates := 0
	for _, kind := range []schema.GroupVersionKind{dnsEndpointKind, certificateKind} {
		err := list(ctx, c.system, kind, names.EdgeNamespace, mine, func(o client.Object) {
			l.add(c.control, o)
			if kind == certificateKind {
				certificates++
			}
		})
		if err != nil {
			return err
		}
	}
	challenges, err := challengesOf(ctx, c.system, r.Domain)
	if err != nil {
		return err
	}
	for i := range challenges {
		l.say(&challenges[i])
	}
	return list(ctx, c.system, secretKind, names.EdgeNamespace, mine, func(o client.Object) {
		if certificates > 0 {
			l.say(o)
			return
		}
		l.add(c.control, o)
	})
}

// list what was made, metadata only. A kind that is not served has no objects.
func list(ctx context.Context, from client.Reader, kind schema.GroupVersionKind, namespace string, which client.MatchingLabels, f func(client.Object)) error {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := from.List(ctx, l, client.InNamespace(namespace), which)
	if notServed(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot list what is left of the kind %s in namespace %s", kind.Kind, namespace)
	}
	for i := range l.Items {
		l.Items[i].SetGroupVersionKind(kind)
		f(&l.Items[i])
	}
	return nil
}

// remove what can be deleted. One that cannot does not keep the others.
func (c *cleaner) remove(ctx context.Context, l *leftovers) error {
	var errs []error
	for _, d := range l.deletable {
		errs = append(errs, d.make(ctx))
	}
	return errors.Join(errs...)
}

// sweep deletes what there is, as far as it goes at once, and returns what is left.
func (c *cleaner) sweep(ctx context.Context, r v1alpha1.EdgeRemainderSpec) (*leftovers, error) {
	// Twice, since the certificate's Secret follows the certificate.
	for range 2 {
		l := c.find(ctx, r)
		if len(l.deletable) == 0 {
			return l, nil
		}
		if err := c.remove(ctx, l); err != nil {
			return l, err
		}
	}
	return c.find(ctx, r), nil
}
