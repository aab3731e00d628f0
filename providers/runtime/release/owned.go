package release

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	helm "helm.sh/helm/v3/pkg/release"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata"

	"github.com/steading-dev/steading/providers/runtime/render"
)

// A live func returns what there is on the cluster of a rendered object, nil if it is not there.
type live func(obj *unstructured.Unstructured) (metav1.Object, error)

// liveIn reads the metadata of objects, of the kinds that the mapper knows, until ctx is done.
func liveIn(ctx context.Context, m metadata.Interface, mapper meta.RESTMapper) live {
	return func(obj *unstructured.Unstructured) (metav1.Object, error) {
		gvk := obj.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			return nil, nil // Nothing is left of a kind that is gone.
		}
		if err != nil {
			return nil, errors.Wrapf(err, "cannot look up the kind of %s", describe(obj))
		}
		found, err := m.Resource(mapping.Resource).Namespace(obj.GetNamespace()).Get(ctx, obj.GetName(), metav1.GetOptions{})
		if kerrors.IsNotFound(err) {
			return nil, nil
		}
		return found, errors.Wrapf(err, "cannot read %s", describe(obj))
	}
}

// disown takes out of a record what belongs to another release of the namespace. An operation that lost a race for a name
// has that object in its record all the same, and Helm, which asks whose an object is only where its record has it not,
// would change it with the next upgrade and delete it with the release.
func (e *helmEngine) disown(r *helm.Release) error {
	objs, err := render.Objects([]byte(r.Manifest))
	if err != nil {
		return errors.Wrapf(err, "cannot read the manifest of Helm release %s", e.name)
	}
	var ours []*unstructured.Unstructured
	for _, obj := range objs {
		found, err := e.live(obj)
		if err != nil {
			return err
		}
		if found == nil || found.GetAnnotations()[releaseNameAnnotation] == e.name {
			ours = append(ours, obj)
		}
	}
	if len(ours) == len(objs) {
		return nil
	}
	m, err := manifestOf(ours)
	if err != nil {
		return err
	}
	r.Manifest = string(m)
	return errors.Wrapf(e.cfg.Releases.Update(r), "cannot take what is not its own out of the record of Helm release %s", e.name)
}
