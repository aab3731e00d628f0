package edge

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A change that is to be made, in the name of an account.
type change struct {
	as client.Client
	// want the object to be so; nil: to be gone.
	want client.Object
	// have is what was found; nil: nothing.
	have client.Object
	// patch of have, where only a part of it is ours.
	patch client.Patch
}

func (c change) make(ctx context.Context) error {
	switch {
	case c.patch != nil:
		return errors.Wrapf(c.as.Patch(ctx, c.have, c.patch), "cannot change %s", called(c.have))
	case c.want == nil:
		return remove(ctx, c.as, c.have)
	case c.have == nil:
		err := c.as.Create(ctx, c.want)
		if apimeta.IsNoMatchError(err) {
			return nil // It is defined, and served in a moment.
		}
		return errors.Wrapf(err, "cannot create %s", called(c.want))
	default:
		return errors.Wrapf(c.as.Update(ctx, overlay(c.want, c.have)), "cannot update %s", called(c.want))
	}
}

// remove an object, unless another has taken its name since it was found. A certificate goes after all that cert-manager
// made for it, down to the challenges, which leave records in the zone.
func remove(ctx context.Context, as client.Client, obj client.Object) error {
	uid := obj.GetUID()
	opts := []client.DeleteOption{client.Preconditions{UID: &uid}}
	if obj.GetObjectKind().GroupVersionKind() == certificateKind {
		opts = append(opts, client.PropagationPolicy(metav1.DeletePropagationForeground))
	}
	err := as.Delete(ctx, obj, opts...)
	if apimeta.IsNoMatchError(err) {
		return nil
	}
	return errors.Wrapf(client.IgnoreNotFound(err), "cannot delete %s", called(obj))
}

// find returns what exists under the name of the object, nil if nothing does. A kind that is not served has no objects.
func find[T client.Object](ctx context.Context, from client.Reader, of T) (have T, exists bool, err error) {
	have, ok := of.DeepCopyObject().(T)
	if !ok {
		return of, false, errors.Errorf("%T cannot be copied", of)
	}
	err = from.Get(ctx, client.ObjectKeyFromObject(of), have)
	if kerrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return have, false, nil
	}
	return have, err == nil, errors.Wrapf(err, "cannot read %s", called(of))
}

// notServed reports whether a list failed because the API server does not know the kind.
func notServed(err error) bool { return apimeta.IsNoMatchError(err) || kerrors.IsNotFound(err) }

// differs reports whether what is wanted of an object is not so. What others added to it is left alone.
func differs(want, have client.Object) bool {
	if !contains(have.GetLabels(), want.GetLabels()) || !contains(have.GetAnnotations(), want.GetAnnotations()) {
		return true
	}
	switch w := want.(type) {
	case *corev1.Secret:
		h, ok := have.(*corev1.Secret)
		return !ok || !equality.Semantic.DeepEqual(w.Data, h.Data)
	case *unstructured.Unstructured:
		h, ok := have.(*unstructured.Unstructured)
		return !ok || !within(w.Object["spec"], h.Object["spec"])
	default:
		return true
	}
}

// within reports whether have is want, but for fields that the API server or an operator defaulted. A nil in want says that
// there has to be nothing.
func within(want, have any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for k := range w {
			if !within(w[k], h[k]) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return false
		}
		for i := range w {
			if !within(w[i], h[i]) {
				return false
			}
		}
		return true
	default:
		return equality.Semantic.DeepEqual(want, have)
	}
}

// overlay is what was found, changed to what is wanted.
func overlay(want, have client.Object) client.Object {
	out, ok := have.DeepCopyObject().(client.Object)
	if !ok {
		return want
	}
	out.SetLabels(merged(have.GetLabels(), want.GetLabels()))
	out.SetAnnotations(merged(have.GetAnnotations(), want.GetAnnotations()))
	switch o := out.(type) {
	case *corev1.Secret:
		if w, ok := want.(*corev1.Secret); ok {
			o.Data = w.Data
		}
	case *unstructured.Unstructured:
		if w, ok := want.(*unstructured.Unstructured); ok {
			o.Object["spec"] = w.Object["spec"]
		}
	}
	return out
}

func contains(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

func merged(have, want map[string]string) map[string]string {
	out := make(map[string]string, len(have)+len(want))
	for k, v := range have {
		out[k] = v
	}
	for k, v := range want {
		out[k] = v
	}
	return out
}

// called is an object by kind and name.
func called(obj client.Object) string {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		switch obj.(type) {
		case *corev1.Secret:
			kind = "Secret"
		case *corev1.Namespace:
			kind = "Namespace"
		default:
			kind = "object"
		}
	}
	if obj.GetNamespace() == "" {
		return kind + " " + obj.GetName()
	}
	return kind + " " + obj.GetNamespace() + "/" + obj.GetName()
}
