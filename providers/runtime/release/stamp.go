package release

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// A stamp puts the environment's identity on each object and pod template that a chart renders, and refuses what an
// environment's chart may not make.
type stamp struct {
	identity v1alpha1.Identity
	// component by name. Empty: it is the runtime.
	component string
	namespace string
	mapper    meta.RESTMapper
	// stopped scales to zero what is rendered.
	stopped bool
}

// stampOf a release. The runtime's chart is told by its values that it is stopped; a component's is not told.
func stampOf(p v1alpha1.ReleaseParameters, m meta.RESTMapper) stamp {
	s := stamp{identity: p.Identity, namespace: p.Namespace, mapper: m}
	if p.Component != nil {
		s.component, s.stopped = p.Component.Name, p.Power == steading.PowerStopped
	}
	return s
}

// A refusedError says that a chart may not be deployed. Trying again is of no use.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

func refuse(format string, args ...any) error { return &refusedError{fmt.Errorf(format, args...)} }

// all objects that a chart rendered are checked and stamped, and written down for Helm.
func (s stamp) all(objs []*unstructured.Unstructured) (manifest, error) {
	for _, obj := range objs {
		if err := s.object(obj); err != nil {
			return nil, err
		}
	}
	return manifestOf(objs)
}

// A manifest is what is installed. It is the post-renderer of every Helm action: what Helm renders it passes over, since it
// was rendered before. See package render.
type manifest []byte

// Run gives Helm the manifest.
func (m manifest) Run(*bytes.Buffer) (*bytes.Buffer, error) {
	return bytes.NewBuffer(bytes.Clone(m)), nil
}

// manifestOf objects, one document each.
func manifestOf(objs []*unstructured.Unstructured) (manifest, error) {
	out := &bytes.Buffer{}
	for _, obj := range objs {
		raw, err := yaml.Marshal(obj.Object)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot write %s", describe(obj))
		}
		out.WriteString("---\n")
		out.Write(raw)
	}
	return out.Bytes(), nil
}

func (s stamp) object(obj *unstructured.Unstructured) error {
	gvk := obj.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return refuse("the chart wants %s, a kind that the cluster does not know", describe(obj))
	}
	if err != nil {
		return errors.Wrapf(err, "cannot look up the kind of %s", describe(obj))
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return refuse("the chart wants %s, which is not of a namespace; an environment's charts may make namespaced objects only", describe(obj))
	}
	if ns := obj.GetNamespace(); ns != "" && ns != s.namespace {
		return refuse("the chart wants %s in namespace %s; an environment's charts may make objects in %s only", describe(obj), ns, s.namespace)
	}
	if helmRecord(obj) {
		return refuse("the chart wants %s, a record of Helm's; an environment's charts may make none", describe(obj))
	}
	if s.component != "" && names.OfRuntime(s.identity.Tenant, obj.GetName()) {
		return refuse("the chart wants %s, a name that is kept for the environment's runtime; give the component, or what its chart makes, another", describe(obj))
	}
	// Helm reads it as its type.
	if err := kit.CheckAmounts(obj.Object); err != nil {
		return refuse("the chart wants %s with an amount that is out of bounds: %w", describe(obj), err)
	}
	obj.SetNamespace(s.namespace)
	if s.stopped {
		if err := stop(obj); err != nil {
			return err
		}
	}
	return s.mark(obj.Object)
}

// helmRecord reports whether an object would be one of Helm's records, by which a release could be made to seem another.
func helmRecord(obj *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(obj.Object, "type")
	return obj.GetKind() == "Secret" && (strings.HasPrefix(kind, "helm.sh/") || strings.HasPrefix(obj.GetName(), "sh.helm.release."))
}

// mark an object, and the pod template in it.
func (s stamp) mark(obj map[string]any) error {
	if err := s.metadata(obj); err != nil {
		return err
	}
	for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate"}} {
		inner, ok, err := unstructured.NestedMap(obj, path...)
		if err != nil || !ok || inner["spec"] == nil {
			continue
		}
		if err := s.mark(inner); err != nil {
			return err
		}
		if err := unstructured.SetNestedMap(obj, inner, path...); err != nil {
			return err
		}
	}
	return nil
}

// metadata gets the identity. The label app.kubernetes.io/managed-by stays Helm's, which knows its objects by it.
func (s stamp) metadata(obj map[string]any) error {
	marks := labels(s.identity)
	if s.component != "" {
		marks[names.LabelComponent] = s.component
	}
	for k, v := range marks {
		for _, in := range []string{"labels", "annotations"} {
			if err := unstructured.SetNestedField(obj, v, "metadata", in, k); err != nil {
				return refuse("cannot stamp an object: its metadata is malformed: %w", err)
			}
		}
	}
	return nil
}

// labels of what Helm makes and keeps for an environment.
func labels(id v1alpha1.Identity) map[string]string {
	return map[string]string{
		names.LabelTenant:      id.Tenant,
		names.LabelEnvironment: id.Environment,
		names.LabelComposite:   string(id.UID),
	}
}

func describe(obj *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %q", obj.GetKind(), obj.GetName())
}
