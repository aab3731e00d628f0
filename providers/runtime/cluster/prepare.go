package cluster

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// provider is the account that the provider runs as.
const provider = "provider-runtime"

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
		e.informed.of(ctx, mg.Name)
		return nil
	}
	if err := e.allowReading(ctx, p); err != nil {
		return err
	}
	if p.Credentials.SecretRef != nil {
		e.informed.of(ctx, mg.Name, subject{secretResource, client.ObjectKey{Namespace: p.Claim.Namespace, Name: p.Credentials.SecretRef.Name}})
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
	e.informed.of(ctx, mg.Name, subject{secretResource, key}, subject{m.Resource, key})
	return nil
}

// unrequestOld deletes the ExternalSecret of a claim that had one and has none any more.
func (e *external) unrequestOld(ctx context.Context, mg *v1alpha1.Cluster) error {
	if mg.Status.AtProvider.Credential == "" || mg.Status.ObservedGeneration == mg.Generation {
		return nil
	}
	return e.unrequest(ctx, mg.Spec.ForProvider)
}

// allowReading binds the provider to the role that reads Secrets, in the tenant's namespace. It is bound for as long as a
// context is there, and nowhere else.
func (e *external) allowReading(ctx context.Context, p v1alpha1.ClusterParameters) error {
	want := reader(p)
	have := &rbacv1.RoleBinding{}
	err := e.reader.Get(ctx, client.ObjectKeyFromObject(want), have)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrap(err, "cannot look for the right to read the context's credential")
	}
	if err == nil {
		if err := e.o.Claims.Ours(ctx, have, p.Identity, kit.ContextClaim(p.Claim)); err != nil {
			return err
		}
		if have.RoleRef == want.RoleRef && slices.Equal(have.Subjects, want.Subjects) && kit.Stamped(have, p.Identity) {
			return nil
		}
	}
	if err := kit.Apply(ctx, e.client, want, fieldOwner); err != nil {
		return err
	}
	return e.allowed(ctx, p)
}

// allowed waits until the API server knows of the right that was just given.
func (e *external) allowed(ctx context.Context, p v1alpha1.ClusterParameters) error {
	key := client.ObjectKey{Namespace: p.Claim.Namespace, Name: names.ExternalCredential(p.Context)}
	for range 20 {
		err := e.reader.Get(ctx, key, &corev1.Secret{})
		if !kerrors.IsForbidden(err) {
			return nil
		}
		pause(ctx, 50*time.Millisecond)
	}
	return errors.Errorf("the provider may not read Secrets of namespace %s yet", p.Claim.Namespace)
}

// reader is the binding by which the provider reads a context's credential.
func reader(p v1alpha1.ClusterParameters) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Claim.Namespace, Name: names.ContextReader(p.Context), Labels: map[string]string{names.LabelContext: p.Context}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: names.ContextCredentialReader},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: provider, Namespace: names.SystemNamespace}},
	}
	kit.Stamp(b, p.Identity)
	return b
}

func sortedAddresses(as []netip.Addr) []netip.Addr {
	for i := range as {
		as[i] = as[i].Unmap()
	}
	slices.SortFunc(as, netip.Addr.Compare)
	return slices.Compact(as)
}
