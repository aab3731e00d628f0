package cluster

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
	"github.com/steading-dev/steading/providers/internal/kit"
)

const (
	// secretType of kept credentials. The provider may write no others in steading-system.
	secretType corev1.SecretType = "steading.dev/context-credential" //nolint:gosec // The type of a Secret, not one.
	// keepFinalizer keeps a credential as long as something of the context may have to be deleted with it, whoever deletes
	// the Secret.
	keepFinalizer = "runtime.steading.dev/context-credential"
	// annotationSource says where the credential came from.
	annotationSource = "steading.dev/credential-source"
	keyServer        = "server"
	keyCA            = "ca.crt"
)

// kept is the last good endpoint of a Cluster, as it is kept in a Secret of steading-system.
type kept struct {
	secret   *corev1.Secret
	endpoint Endpoint
	// source says where the credential came from.
	source string
}

// keeper keeps the last good endpoint of each Cluster.
type keeper struct {
	client client.Client
	reader client.Reader // uncached
}

// read what is kept for the Cluster, nil if nothing is.
func (k keeper) read(ctx context.Context, mg *v1alpha1.Cluster, policy address.Policy) (*kept, error) {
	p := mg.Spec.ForProvider
	s := &corev1.Secret{}
	key := client.ObjectKey{Namespace: names.SystemNamespace, Name: names.ContextCredential(p.Identity.Tenant, p.Context)}
	if err := k.reader.Get(ctx, key, s); err != nil {
		return nil, errors.Wrapf(client.IgnoreNotFound(err), "cannot read the kept credential, Secret %s", key)
	}
	if err := kit.Ours(s, p.Identity, ""); err != nil {
		return nil, err
	}
	e := Endpoint{Server: string(s.Data[keyServer]), CA: s.Data[keyCA], Policy: policy,
		Credential: Credential{token: string(s.Data[keyToken]), cert: s.Data[keyCert], key: s.Data[keyKey]}}
	return &kept{secret: s, endpoint: e, source: s.Annotations[annotationSource]}, nil
}

// keep an endpoint that was proved, in place of what was kept before.
func (k keeper) keep(ctx context.Context, mg *v1alpha1.Cluster, before *kept, e Endpoint, source string) error {
	s := secretOf(mg, e, source)
	if before != nil && before.secret.DeletionTimestamp == nil {
		s.ResourceVersion = before.secret.ResourceVersion
		return errors.Wrap(k.client.Update(ctx, s), "cannot keep the credential")
	}
	if before != nil {
		// Somebody deletes it. It goes, and is made anew.
		if err := k.release(ctx, before.secret); err != nil {
			return err
		}
	}
	return errors.Wrap(k.client.Create(ctx, s), "cannot keep the credential")
}

// forget the credential for good.
func (k keeper) forget(ctx context.Context, of *kept) error {
	if of.secret.DeletionTimestamp == nil {
		err := k.client.Delete(ctx, of.secret, client.Preconditions{UID: &of.secret.UID})
		if err != nil {
			return errors.Wrap(client.IgnoreNotFound(err), "cannot delete the kept credential")
		}
	}
	return k.release(ctx, of.secret)
}

// release a Secret that is being deleted.
func (k keeper) release(ctx context.Context, s *corev1.Secret) error {
	now := &corev1.Secret{}
	if err := k.reader.Get(ctx, client.ObjectKeyFromObject(s), now); err != nil {
		return errors.Wrap(client.IgnoreNotFound(err), "cannot read the kept credential")
	}
	if now.UID != s.UID || !controllerutil.RemoveFinalizer(now, keepFinalizer) {
		return nil
	}
	err := k.client.Update(ctx, now)
	if kerrors.IsNotFound(err) {
		return nil
	}
	return errors.Wrap(err, "cannot let go of the kept credential")
}

// secretOf is the Secret that an endpoint is kept in. Its owner does not wait for it: in a deletion in the foreground the
// garbage collector would delete it before what still needs it.
func secretOf(mg *v1alpha1.Cluster, e Endpoint, source string) *corev1.Secret {
	p := mg.Spec.ForProvider
	owner := metav1.NewControllerRef(mg, v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterKind))
	owner.BlockOwnerDeletion = ptr.To(false)
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       names.SystemNamespace,
			Name:            names.ContextCredential(p.Identity.Tenant, p.Context),
			OwnerReferences: []metav1.OwnerReference{*owner},
			Finalizers:      []string{keepFinalizer},
			Annotations:     map[string]string{annotationSource: source},
			Labels:          map[string]string{names.LabelContext: p.Context},
		},
		Type: secretType,
		Data: e.Credential.data(),
	}
	s.Data[keyServer], s.Data[keyCA] = []byte(e.Server), e.CA
	kit.Stamp(s, p.Identity)
	return s
}
