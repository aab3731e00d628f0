package cluster

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/internal/referred"
)

// prepare what the claim's credential is read by: the right to read it, the ExternalSecret that fetches it, and the watches
// that tell when it changes. A credential in the claim itself needs none of it.
func (e *external) prepare(ctx context.Context, mg *v1alpha1.Cluster) error {
	p := mg.Spec.ForProvider
	if p.Credentials.ExternalSecret == nil {
		if err := e.unrequestOld(ctx, mg); err != nil {
			return err
		}
	}
	if p.Credentials.Age != "" {
		e.informed.Of(ctx, mg.Name)
		return nil
	}
	if err := e.rights().Give(ctx, reader(p), p.Identity, kit.ContextClaim(p.Claim)); err != nil {
		return err
	}
	if p.Credentials.SecretRef != nil {
		e.informed.Of(ctx, mg.Name, referred.Subject{Resource: referred.Secrets, Key: client.ObjectKey{Namespace: p.Claim.Namespace, Name: p.Credentials.SecretRef.Name}})
		return nil
	}
	if err := e.request(ctx, p); err != nil {
		return err
	}
	m, err := e.offers.mapping()
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: p.Claim.Namespace, Name: names.ExternalCredential(p.Context)}
	e.informed.Of(ctx, mg.Name, referred.Subject{Resource: referred.Secrets, Key: key}, referred.Subject{Resource: m.Resource, Key: key})
	return nil
}

// rights to read in a tenant's namespace: it is read for as long as a context is there, and nowhere else.
func (e *external) rights() referred.Rights {
	return referred.Rights{Provider: names.ProviderRuntime, Client: e.client, Reader: e.reader, Uncached: e.reader, Claims: e.o.Claims}
}

// unrequestOld deletes the ExternalSecret of a claim that had one and has none any more.
func (e *external) unrequestOld(ctx context.Context, mg *v1alpha1.Cluster) error {
	if mg.Status.AtProvider.Credential == "" || mg.Status.ObservedGeneration == mg.Generation {
		return nil
	}
	return e.unrequest(ctx, mg.Spec.ForProvider)
}

// reader is the binding by which the provider reads a context's credential.
func reader(p v1alpha1.ClusterParameters) *rbacv1.RoleBinding {
	b := referred.Right(names.ProviderRuntime, p.Claim.Namespace, names.ContextReader(p.Context), names.ContextCredentialReader, p.Identity)
	b.Labels[names.LabelContext] = p.Context
	return b
}
