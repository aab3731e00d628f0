package release

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/internal/referred"
	"github.com/steading-dev/steading/providers/runtime/render"
)

const (
	kindSecret = "Secret"
	// defaultKey is where values are if the claim does not say.
	defaultKey = "values.yaml"
)

// A valuesSource has the values that a component's claim refers to.
type valuesSource interface {
	// versions of the objects that values come from. When one changes, the Release is woken.
	versions(ctx context.Context, mg *v1alpha1.Release) ([]string, error)
	// read the values, and tell what of them is secret.
	read(ctx context.Context, p v1alpha1.ReleaseParameters) (map[string]any, secrecy, error)
	// letGo of the right to read them, and of the watches.
	letGo(ctx context.Context, mg *v1alpha1.Release) error
}

// A valuesError says why values cannot be used. It never quotes them.
type valuesError struct{ msg string }

func (e *valuesError) Error() string { return e.msg }

// unusable values are not tried again before they change.
func unusable(format string, args ...any) error {
	return &refusedError{&valuesError{fmt.Sprintf(format, args...)}}
}

// referredValues are in Secrets and ConfigMaps of the claim's namespace.
type referredValues struct {
	reader  client.Reader // uncached
	rights  referred.Rights
	watches *referred.Watches
	// renderer reads what YAML could blow up.
	renderer *render.Renderer
}

func rightOf(p v1alpha1.ReleaseParameters) *rbacv1.RoleBinding {
	name := names.ValuesReader(p.Identity.Environment, p.Component.Name)
	return referred.Right(names.ProviderRuntime, p.Claim.Namespace, name, names.ComponentValuesReader, p.Identity)
}

func (r referredValues) versions(ctx context.Context, mg *v1alpha1.Release) ([]string, error) {
	p := mg.Spec.ForProvider
	if p.Component == nil {
		return nil, nil
	}
	if len(p.Component.ValuesFrom) == 0 {
		return nil, r.letGo(ctx, mg)
	}
	if err := r.rights.Give(ctx, rightOf(p), p.Identity, kit.EnvironmentClaim(p.Claim)); err != nil {
		return nil, err
	}
	subjects := make([]referred.Subject, 0, len(p.Component.ValuesFrom))
	for _, from := range p.Component.ValuesFrom {
		subjects = append(subjects, subjectOf(p, from))
	}
	r.watches.Of(ctx, mg.Name, subjects...)
	versions := make([]string, 0, len(subjects))
	for _, from := range p.Component.ValuesFrom {
		v, err := r.version(ctx, p, from)
		if err != nil {
			return nil, err
		}
		versions = append(versions, v)
	}
	return versions, nil
}

func subjectOf(p v1alpha1.ReleaseParameters, from steading.ValuesFrom) referred.Subject {
	s := referred.Subject{Resource: referred.ConfigMaps, Key: client.ObjectKey{Namespace: p.Claim.Namespace, Name: from.Name}}
	if from.Kind == kindSecret {
		s.Resource = referred.Secrets
	}
	return s
}

// version of an object, read as metadata only. It says which key is used, too.
func (r referredValues) version(ctx context.Context, p v1alpha1.ReleaseParameters, from steading.ValuesFrom) (string, error) {
	m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: from.Kind}}
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: p.Claim.Namespace, Name: from.Name}, m)
	if client.IgnoreNotFound(err) != nil {
		return "", errors.Wrapf(err, "cannot look at %s %s, which values come from", from.Kind, from.Name)
	}
	return strings.Join([]string{from.Kind, from.Name, keyOfValues(from), string(m.UID), m.ResourceVersion}, "/"), nil
}

func keyOfValues(from steading.ValuesFrom) string { return cmp.Or(from.Key, defaultKey) }

// read merges the objects' values in order, a later one over an earlier one.
func (r referredValues) read(ctx context.Context, p v1alpha1.ReleaseParameters) (map[string]any, secrecy, error) {
	merged := map[string]any{}
	var s secrecy
	for _, from := range p.Component.ValuesFrom {
		raw, err := r.raw(ctx, p, from)
		if err != nil {
			return nil, s, err
		}
		values, err := r.parse(ctx, p, from, raw)
		if err != nil {
			return nil, s, err
		}
		if from.Kind == kindSecret {
			s.add(values)
		}
		merged = merge(values, merged)
	}
	return merged, s, nil
}

// parse the values of one object. Errors do not quote them.
func (r referredValues) parse(ctx context.Context, p v1alpha1.ReleaseParameters, from steading.ValuesFrom, raw []byte) (map[string]any, error) {
	values := map[string]any{}
	var err error
	if bytes.ContainsRune(raw, '&') {
		// It may have anchors, and aliases that make it as large as they like.
		if raw, err = r.renderer.Values(ctx, p.Identity.Tenant, raw); err != nil && !errors.As(err, new(*render.RefusedError)) {
			return nil, errors.Wrapf(err, "cannot read key %s of %s %s", keyOfValues(from), from.Kind, from.Name)
		}
		if err != nil {
			return nil, unusable("key %s of %s %s cannot be used: %v: correct it", keyOfValues(from), from.Kind, from.Name, err)
		}
	}
	if err := yaml.Unmarshal(raw, &values); err != nil {
		// The parser's error may quote a line.
		return nil, unusable("key %s of %s %s is not a YAML table of values: correct it", keyOfValues(from), from.Kind, from.Name)
	}
	return values, nil
}

// raw values of one object.
func (r referredValues) raw(ctx context.Context, p v1alpha1.ReleaseParameters, from steading.ValuesFrom) ([]byte, error) {
	key := client.ObjectKey{Namespace: p.Claim.Namespace, Name: from.Name}
	data, err := r.data(ctx, key, from.Kind)
	if kerrors.IsNotFound(err) {
		return nil, unusable("there is no %s %s in namespace %s: create it, or correct valuesFrom of component %s", from.Kind, from.Name, p.Claim.Namespace, p.Component.Name)
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read %s %s, which values come from", from.Kind, from.Name)
	}
	raw, ok := data[keyOfValues(from)]
	if !ok {
		return nil, unusable("%s %s has no key %s: add it, or correct valuesFrom of component %s", from.Kind, from.Name, keyOfValues(from), p.Component.Name)
	}
	return raw, nil
}

func (r referredValues) data(ctx context.Context, key client.ObjectKey, kind string) (map[string][]byte, error) {
	if kind == kindSecret {
		s := &corev1.Secret{}
		err := r.reader.Get(ctx, key, s)
		return s.Data, err
	}
	c := &corev1.ConfigMap{}
	err := r.reader.Get(ctx, key, c)
	data := map[string][]byte{}
	for k, v := range c.BinaryData {
		data[k] = v
	}
	for k, v := range c.Data {
		data[k] = []byte(v)
	}
	return data, err
}

func (r referredValues) letGo(ctx context.Context, mg *v1alpha1.Release) error {
	p := mg.Spec.ForProvider
	if p.Component == nil {
		return nil
	}
	r.watches.Of(ctx, mg.Name)
	err := r.rights.Reader.Get(ctx, client.ObjectKeyFromObject(rightOf(p)), &rbacv1.RoleBinding{})
	if kerrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return errors.Wrap(err, "cannot look for the right to read the component's values")
	}
	return r.rights.Take(ctx, rightOf(p))
}

// secrecy is what may not be said: the values that come from Secrets.
type secrecy struct{ values []string }

// shortest value that is kept from what is said. To take out shorter ones would tell them by the gaps.
const shortest = 4

// withheld stands for what may not be said.
const withheld = "(withheld)"

func (s *secrecy) add(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			s.add(inner)
		}
	case []any:
		for _, inner := range v {
			s.add(inner)
		}
	case nil, bool:
	case string:
		s.addText(v)
	case float64:
		s.addText(strconv.FormatFloat(v, 'f', -1, 64))
	default:
		s.addText(fmt.Sprint(v))
	}
}

// addText in the forms that charts and API servers write it in, and each of its lines, one of which may be quoted alone.
func (s *secrecy) addText(v string) {
	for _, text := range append(strings.Split(v, "\n"), v) {
		if text = strings.TrimSpace(text); len(text) < shortest {
			continue
		}
		quoted := strconv.Quote(text)
		s.values = append(s.values, text, quoted[1:len(quoted)-1], base64.StdEncoding.EncodeToString([]byte(text)))
	}
	if len(v) >= shortest {
		s.values = append(s.values, v, base64.StdEncoding.EncodeToString([]byte(v)))
	}
}

// redact takes what may not be said out of an error.
func (s *secrecy) redact(err error) error {
	if err == nil || len(s.values) == 0 {
		return err
	}
	longestFirst := slices.Clone(s.values)
	slices.SortFunc(longestFirst, func(a, b string) int { return len(b) - len(a) })
	msg := err.Error()
	for _, v := range longestFirst {
		msg = strings.ReplaceAll(msg, v, withheld)
	}
	return &redactedError{msg: msg, err: err}
}

// A redactedError says what another does, without what is secret.
type redactedError struct {
	msg string
	err error
}

func (e *redactedError) Error() string { return e.msg }
func (e *redactedError) Unwrap() error { return e.err }
