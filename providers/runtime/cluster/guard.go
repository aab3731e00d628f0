package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// The guard of a target are the same roles and policies that the platform's own cluster has. It is shared: each context that
// counts on it says so in an annotation, with the user that its credential stands for, whom the policies let pass as they let
// pass the provider on its own cluster. The last context to go takes the guard with it.

// A guard is the part of it that one context wants.
type guard struct {
	client  client.Client
	context string // <tenant>-<context>
	user    string // whom the target takes the credential for
}

// newGuardClient knows the kinds of a guard, so that a target is not asked for all of its kinds.
func newGuardClient(cfg *rest.Config) (client.Client, error) {
	m := meta.NewDefaultRESTMapper(nil)
	for _, k := range []schema.GroupVersionKind{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	} {
		m.Add(k, meta.RESTScopeRoot)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(target.Bounded)
	cfg.QPS, cfg.Burst, cfg.Timeout = 50, 50, requestTimeout
	return client.New(cfg, client.Options{Scheme: runtime.NewScheme(), Mapper: m})
}

// stale are the objects that are missing on the target or not as they should be, as they should be.
func (g guard) stale(ctx context.Context) ([]*unstructured.Unstructured, error) {
	wanted, err := manifests()
	if err != nil {
		return nil, err
	}
	var stale []*unstructured.Unstructured
	for _, want := range wanted {
		have, err := g.read(ctx, want)
		if err != nil {
			return nil, err
		}
		next, err := g.next(have, want)
		if err != nil {
			return nil, err
		}
		if next != nil {
			stale = append(stale, next)
		}
	}
	return stale, nil
}

// read what the target has of an object, nil if nothing.
func (g guard) read(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	have := &unstructured.Unstructured{}
	have.SetGroupVersionKind(want.GroupVersionKind())
	err := g.client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if kerrors.IsNotFound(err) && !unserved(err) {
		return nil, nil //nolint:nilnil // Nil is what there is.
	}
	return have, errors.Wrapf(err, "cannot read %s %s", want.GetKind(), want.GetName())
}

// unserved reports whether it is the kind that was not found, and not the object.
func unserved(err error) bool {
	var s kerrors.APIStatus
	return errors.As(err, &s) && (s.Status().Details == nil || s.Status().Details.Name == "")
}

// next is what the target's object has to become, nil if it is that already.
func (g guard) next(have, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if have == nil {
		have = &unstructured.Unstructured{}
	} else if have.GetLabels()[names.LabelManagedBy] != names.ManagedBy {
		return nil, g.foreign(have, want)
	}
	users := usersOf(have)
	users[g.context] = g.user
	next := want.DeepCopy()
	next.SetLabels(merged(have.GetLabels(), want.GetLabels(), map[string]string{names.LabelManagedBy: names.ManagedBy}))
	next.SetAnnotations(merged(have.GetAnnotations(), annotations(users)))
	next.SetResourceVersion(have.GetResourceVersion())
	if err := letPass(next, users); err != nil {
		return nil, err
	}
	if same(have, next) {
		return nil, nil //nolint:nilnil // Nothing is to be done.
	}
	return next, nil
}

// foreign judges an object that somebody else installed, such as the operator of a Steading on the target itself. It does as
// well, if it says the same.
func (g guard) foreign(have, want *unstructured.Unstructured) error {
	for _, part := range []string{"spec", "rules"} {
		if !contains(have.Object[part], want.Object[part]) {
			return errors.Errorf("%s %s exists on the cluster, was not made by Steading and says something else: delete or rename it there", want.GetKind(), want.GetName())
		}
	}
	return nil
}

// same reports whether the target's object holds all of the next one.
func same(have, next *unstructured.Unstructured) bool {
	return contains(have.Object["spec"], next.Object["spec"]) && contains(have.Object["rules"], next.Object["rules"]) &&
		maps.Equal(have.GetLabels(), next.GetLabels()) && maps.Equal(have.GetAnnotations(), next.GetAnnotations())
}

// install what is stale.
func (g guard) install(ctx context.Context, stale []*unstructured.Unstructured) error {
	for _, u := range stale {
		var err error
		if u.GetResourceVersion() == "" {
			err = g.client.Create(ctx, u)
		} else {
			err = g.client.Update(ctx, u)
		}
		if err != nil {
			return errors.Wrapf(err, "cannot install %s %s", u.GetKind(), u.GetName())
		}
	}
	return nil
}

// remove the context from the guard, and the guard when that was the last one. Policies go first: without the others'
// users they would hold up who is left.
func (g guard) remove(ctx context.Context) error {
	wanted, err := manifests()
	if err != nil {
		return err
	}
	slices.Reverse(wanted)
	for _, want := range wanted {
		have, err := g.read(ctx, want)
		if err != nil {
			return err
		}
		if have == nil || have.GetLabels()[names.LabelManagedBy] != names.ManagedBy {
			continue
		}
		if err := g.withdraw(ctx, have); err != nil {
			return errors.Wrapf(client.IgnoreNotFound(err), "cannot remove %s %s", have.GetKind(), have.GetName())
		}
	}
	return nil
}

func (g guard) withdraw(ctx context.Context, have *unstructured.Unstructured) error {
	users := usersOf(have)
	delete(users, g.context)
	if len(users) == 0 {
		uid, version := have.GetUID(), have.GetResourceVersion()
		return g.client.Delete(ctx, have, client.Preconditions{UID: &uid, ResourceVersion: &version})
	}
	a := have.GetAnnotations()
	if _, ok := a[names.AnnotationGuards+g.context]; !ok {
		return nil
	}
	delete(a, names.AnnotationGuards+g.context)
	have.SetAnnotations(a)
	if err := letPass(have, users); err != nil {
		return err
	}
	return g.client.Update(ctx, have)
}

// usersOf are the users that contexts act as on the target, by context, as an object of the guard says.
func usersOf(u *unstructured.Unstructured) map[string]string {
	users := map[string]string{}
	for k, v := range u.GetAnnotations() {
		if context, ok := strings.CutPrefix(k, names.AnnotationGuards); ok {
			users[context] = v
		}
	}
	return users
}

func annotations(users map[string]string) map[string]string {
	a := make(map[string]string, len(users))
	for context, user := range users {
		a[names.AnnotationGuards+context] = user
	}
	return a
}

// letPass writes into a policy whom it takes for Steading's provider.
func letPass(u *unstructured.Unstructured, users map[string]string) error {
	variables, found, err := unstructured.NestedSlice(u.Object, "spec", "variables")
	if err != nil || !found {
		return err
	}
	for _, v := range variables {
		if m, ok := v.(map[string]any); ok && m["name"] == "provider" {
			m["expression"] = "request.userInfo.username in [" + strings.Join(quoted(users), ", ") + "]"
		}
	}
	return unstructured.SetNestedSlice(u.Object, variables, "spec", "variables")
}

// quoted are the users, each once and sorted, as literals of CEL.
func quoted(users map[string]string) []string {
	var q []string
	for _, u := range slices.Compact(slices.Sorted(maps.Values(users))) {
		q = append(q, strconv.QuoteToASCII(u))
	}
	return q
}

func merged(from ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range from {
		maps.Copy(all, m)
	}
	return all
}

// refused says why the guard is not installed, in the API server's own words, when the credential may not install it.
func refused(err error) (string, bool) {
	if kerrors.IsForbidden(err) || kerrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return kit.CleanMessage(err.Error()), true
	}
	return "", false
}

// guardOf is the guard that a Cluster wants on the target that a line is held to.
func guardOf(mg *v1alpha1.Cluster, l *line) (guard, error) {
	c, err := l.client()
	if err != nil {
		return guard{}, fmt.Errorf("cannot set up a client of the cluster: %w", err)
	}
	p := mg.Spec.ForProvider
	return guard{client: c, context: names.Context(p.Identity.Tenant, p.Context), user: l.state().user}, nil
}
