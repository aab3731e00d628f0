package cluster

import (
	"bytes"
	"context"
	"fmt"

	"filippo.io/age"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
	"github.com/steading-dev/steading/providers/runtime/cluster/seal"
)

// keyIdentity of the Secret that holds the platform's age identities.
const keyIdentity = "identity.txt"

// An offer is the endpoint that the claim asks for, and where its credential came from.
type offer struct {
	endpoint Endpoint
	source   string
}

// offers are read from what claims refer to.
type offers struct {
	reader client.Reader // uncached
	mapper meta.RESTMapper
}

// read what the Cluster's claim offers. An error that is no [UnreachedError] is one of reading.
func (o offers) read(ctx context.Context, mg *v1alpha1.Cluster, policy address.Policy) (offer, error) {
	p := mg.Spec.ForProvider
	c, source, err := o.credential(ctx, mg)
	if err != nil {
		return offer{}, err
	}
	e, err := NewEndpoint(p.Server, p.CABundle, c, policy)
	return offer{endpoint: e, source: source}, err
}

func (o offers) credential(ctx context.Context, mg *v1alpha1.Cluster) (Credential, string, error) {
	p := mg.Spec.ForProvider
	switch c := p.Credentials; {
	case c.SecretRef != nil:
		return o.secret(ctx, client.ObjectKey{Namespace: p.Claim.Namespace, Name: c.SecretRef.Name},
			steading.ReasonCredentialMissing, "create it, or name another in spec.credentials.secretRef")
	case c.ExternalSecret != nil:
		if err := o.fetched(ctx, p); err != nil {
			return Credential{}, "", err
		}
		return o.secret(ctx, client.ObjectKey{Namespace: p.Claim.Namespace, Name: names.ExternalCredential(p.Context)},
			steading.ReasonCredentialPending, "the External Secrets operator has not made it yet")
	case c.Age != "":
		return o.opened(ctx, mg)
	}
	return Credential{}, "", problem(steading.ReasonCredentialMissing, "spec.credentials is empty: it needs one of secretRef, externalSecret and age")
}

// secret reads a credential from a Secret of the tenant's. If there is none, that is a problem of the reason absent.
func (o offers) secret(ctx context.Context, key client.ObjectKey, absent xpv2.ConditionReason, otherwise string) (Credential, string, error) {
	s := &corev1.Secret{}
	err := o.reader.Get(ctx, key, s)
	if kerrors.IsNotFound(err) {
		return Credential{}, "", problem(absent, "there is no Secret %s: %s", key, otherwise)
	}
	if err != nil {
		return Credential{}, "", errors.Wrapf(err, "cannot read Secret %s", key)
	}
	c, err := credentialOf(s.Data)
	if err != nil {
		return Credential{}, "", problemOf(err).within("Secret %s", key)
	}
	return c, fmt.Sprintf("Secret %s at resource version %s", key, s.ResourceVersion), nil
}

// opened is the credential in the claim's ciphertext.
func (o offers) opened(ctx context.Context, mg *v1alpha1.Cluster) (Credential, string, error) {
	p := mg.Spec.ForProvider
	ids, err := o.identities(ctx)
	if err != nil {
		return Credential{}, "", err
	}
	hash, err := seal.CASHA256(p.CABundle)
	if err != nil {
		return Credential{}, "", problem(steading.ReasonCAMismatch, "spec.caBundle holds no PEM certificate")
	}
	want := seal.Binding{Tenant: p.Identity.Tenant, Context: p.Context, Server: p.Server, CASHA256: hash}
	plain, err := seal.Open(p.Credentials.Age, want, ids...)
	if err != nil {
		return Credential{}, "", problem(steading.ReasonCiphertextRefused, "the ciphertext in spec.credentials.age is refused: %s", err)
	}
	c, err := credentialIn(plain)
	if err != nil {
		return Credential{}, "", problem(steading.ReasonCiphertextRefused, "the ciphertext in spec.credentials.age is refused: %s", err)
	}
	return c, fmt.Sprintf("age ciphertext of the claim, generation %d", mg.Generation), nil
}

func credentialIn(p seal.Plaintext) (Credential, error) {
	if p.Token != "" {
		return NewToken(p.Token)
	}
	return NewClientCertificate([]byte(p.Cert), []byte(p.Key))
}

// identities that ciphertext may have been made to.
func (o offers) identities(ctx context.Context) ([]age.Identity, error) {
	s := &corev1.Secret{}
	key := client.ObjectKey{Namespace: names.SystemNamespace, Name: names.AgeIdentity}
	err := o.reader.Get(ctx, key, s)
	if kerrors.IsNotFound(err) || err == nil && len(s.Data[keyIdentity]) == 0 {
		return nil, problem(steading.ReasonCredentialMissing, "this platform has no age identity (key %s of Secret %s), so it takes no ciphertext: ask the operator to create one, or use secretRef or externalSecret", keyIdentity, key)
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read Secret %s", key)
	}
	ids, err := age.ParseIdentities(bytes.NewReader(s.Data[keyIdentity]))
	if err != nil {
		// The parser's error may quote a line.
		return nil, problem(steading.ReasonCredentialMissing, "key %s of Secret %s is no file of age identities: ask the operator to repair it", keyIdentity, key)
	}
	return ids, nil
}
