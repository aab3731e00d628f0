package cluster

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

var externalSecretKind = schema.GroupKind{Group: "external-secrets.io", Kind: "ExternalSecret"}

// externalSecretVersions that are understood, the best first.
var externalSecretVersions = []string{"v1", "v1beta1"}

// mapping of ExternalSecrets as the cluster serves them.
func (o offers) mapping() (*meta.RESTMapping, error) {
	for _, v := range externalSecretVersions {
		m, err := o.mapper.RESTMapping(externalSecretKind, v)
		if err == nil {
			return m, nil
		}
		if !meta.IsNoMatchError(err) {
			return nil, errors.Wrap(err, "cannot find out whether ExternalSecrets are served")
		}
	}
	return nil, problem(steading.ReasonCredentialMissing,
		"the External Secrets operator is not installed on the control plane: ask the operator of the platform for it, or use spec.credentials.secretRef or age")
}

// externalSecret that fetches a context's credential. Its Secret carries no label of ours: it is the tenant's.
func externalSecret(p v1alpha1.ClusterParameters, m *meta.RESTMapping) *unstructured.Unstructured {
	ref := p.Credentials.ExternalSecret
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"refreshInterval": "1m0s",
			"secretStoreRef":  map[string]any{"kind": "SecretStore", "name": ref.StoreRef.Name},
			"target": map[string]any{
				"name":           names.ExternalCredential(p.Context),
				"creationPolicy": "Owner",
				"deletionPolicy": "Retain",
				"template":       map[string]any{"metadata": map[string]any{"labels": map[string]any{names.LabelContext: p.Context}}, "mergePolicy": "Merge"},
			},
			"dataFrom": []any{map[string]any{"extract": map[string]any{"key": ref.Key}}},
		},
	}}
	u.SetGroupVersionKind(m.GroupVersionKind)
	u.SetNamespace(p.Claim.Namespace)
	u.SetName(names.ExternalCredential(p.Context))
	kit.Stamp(u, p.Identity)
	return u
}

// request what the claim wants fetched, by server-side apply.
func (e *external) request(ctx context.Context, p v1alpha1.ClusterParameters) error {
	m, err := e.offers.mapping()
	if err != nil {
		return err
	}
	want := externalSecret(p, m)
	have, err := e.offers.externalSecret(ctx, p, m)
	if err != nil {
		return err
	}
	if have != nil {
		if err := e.o.Claims.Ours(ctx, have, p.Identity, kit.ContextClaim(p.Claim)); err != nil {
			return problem(steading.ReasonCredentialMissing, "%s", err)
		}
		if contains(have.Object["spec"], want.Object["spec"]) {
			return nil
		}
	}
	return kit.Apply(ctx, e.client, want, fieldOwner)
}

// externalSecret that exists, nil if there is none.
func (o offers) externalSecret(ctx context.Context, p v1alpha1.ClusterParameters, m *meta.RESTMapping) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(m.GroupVersionKind)
	key := client.ObjectKey{Namespace: p.Claim.Namespace, Name: names.ExternalCredential(p.Context)}
	err := o.reader.Get(ctx, key, u)
	if kerrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // Nil is what there is.
	}
	return u, errors.Wrapf(err, "cannot read ExternalSecret %s", key)
}

// fetched reports a problem unless the operator says that the credential is there.
func (o offers) fetched(ctx context.Context, p v1alpha1.ClusterParameters) error {
	m, err := o.mapping()
	if err != nil {
		return err
	}
	u, err := o.externalSecret(ctx, p, m)
	if err != nil {
		return err
	}
	if u == nil {
		return problem(steading.ReasonCredentialPending, "the ExternalSecret %s has not been made yet", names.ExternalCredential(p.Context))
	}
	s := struct {
		Status xpv2.ConditionedStatus `json:"status"`
	}{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
		return errors.Wrapf(err, "cannot read the status of ExternalSecret %s", u.GetName())
	}
	switch ready := s.Status.GetCondition(xpv2.TypeReady); ready.Status {
	case corev1.ConditionTrue:
		return nil
	case corev1.ConditionFalse:
		return problem(steading.ReasonCredentialMissing, "the credential cannot be fetched from %s %s, key %s: %s", "SecretStore",
			p.Credentials.ExternalSecret.StoreRef.Name, p.Credentials.ExternalSecret.Key, kit.CleanMessage(ready.Message))
	default:
		return problem(steading.ReasonCredentialPending, "the External Secrets operator has not answered to ExternalSecret %s yet; if that stays so it does not run", u.GetName())
	}
}

// unrequest deletes the ExternalSecret, if it is ours. The Secret goes with it.
func (e *external) unrequest(ctx context.Context, p v1alpha1.ClusterParameters) error {
	m, err := e.offers.mapping()
	if errors.As(err, new(*UnreachedError)) {
		return nil
	}
	if err != nil {
		return err
	}
	have, err := e.offers.externalSecret(ctx, p, m)
	if kerrors.IsForbidden(err) {
		// The right to read it goes with the namespace.
		return nil
	}
	if err != nil || have == nil || kit.Ours(have, p.Identity, "") != nil {
		return err
	}
	return errors.Wrap(client.IgnoreNotFound(e.client.Delete(ctx, have)), "cannot delete the ExternalSecret")
}

// contains reports whether have holds everything that want does, as an object does that has its defaults.
func contains(have, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		for k, v := range w {
			if !contains(h[k], v) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return len(w) == 0 && have == nil
		}
		for i := range w {
			if !contains(h[i], w[i]) {
				return false
			}
		}
		return true
	default:
		return have == want
	}
}
