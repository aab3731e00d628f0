package target

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// unasked maps the kinds of Kubernetes that are watched without asking the server for them, so that a target is set up at
// once, whether it answers or not.
type unasked struct {
	meta.RESTMapper // asks
	known           *meta.DefaultRESTMapper
}

func newUnasked(asks meta.RESTMapper) (unasked, error) {
	known := meta.NewDefaultRESTMapper(nil)
	for _, obj := range watched() {
		kind, err := apiutil.GVKForObject(obj, scheme.Scheme)
		if err != nil {
			return unasked{}, err
		}
		if !scheme.Scheme.Recognizes(kind) {
			continue // Not every server has it.
		}
		scope := meta.RESTScopeNamespace
		if _, ok := obj.(*corev1.Namespace); ok {
			scope = meta.RESTScopeRoot
		}
		known.Add(kind, scope)
	}
	return unasked{RESTMapper: asks, known: known}, nil
}

// RESTMapping of a kind.
func (u unasked) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m, err := u.known.RESTMapping(kind, versions...); err == nil {
		return m, nil
	}
	return u.RESTMapper.RESTMapping(kind, versions...)
}
