package referred

import (
	"context"
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

// The API server takes a moment until it knows of a right that was just given.
const tries, between = 20, 50 * time.Millisecond

// Right binds a provider to a ClusterRole in the namespace of a claim. Its account has its name, in steading-system, or in
// Crossplane's namespace where Crossplane runs it as a package.
func Right(provider, namespace, name, role string, id v1alpha1.Identity) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{
			{Kind: rbacv1.ServiceAccountKind, Name: provider, Namespace: names.SystemNamespace},
			{Kind: rbacv1.ServiceAccountKind, Name: provider, Namespace: names.CrossplaneNamespace},
		},
	}
	kit.Stamp(b, id)
	return b
}

// Rights are given and taken back.
type Rights struct {
	// Provider whose rights they are, by name.
	Provider string
	// Client to write with.
	Client client.Client
	// Reader of RoleBindings. It may be a cache.
	Reader client.Reader
	// Uncached reads what a right lets be read.
	Uncached client.Reader
	// Claims that are reported to.
	Claims *kit.ClaimReporter
}

// Give a right to the provider, if it does not have it, and wait until the API server knows of it.
func (r Rights) Give(ctx context.Context, want *rbacv1.RoleBinding, id v1alpha1.Identity, claim kit.Claim) error {
	have := &rbacv1.RoleBinding{}
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(want), have)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrapf(err, "cannot look for the right %s", want.Name)
	}
	if err == nil {
		if err := r.Claims.Ours(ctx, have, id, claim); err != nil {
			return err
		}
		if have.RoleRef == want.RoleRef && slices.Equal(have.Subjects, want.Subjects) && kit.Stamped(have, id) {
			return nil
		}
	}
	if err := kit.Apply(ctx, r.Client, want, r.Provider); err != nil {
		return err
	}
	return r.given(ctx, want)
}

// given waits until a Secret that need not be there can be looked for.
func (r Rights) given(ctx context.Context, right *rbacv1.RoleBinding) error {
	for range tries {
		err := r.Uncached.Get(ctx, client.ObjectKeyFromObject(right), &corev1.Secret{})
		if !kerrors.IsForbidden(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(between):
		}
	}
	return errors.Errorf("the provider may not read Secrets of namespace %s yet", right.Namespace)
}

// Take a right back. One that is not there, or in a namespace where the provider may do nothing any more, is no error.
func (r Rights) Take(ctx context.Context, right *rbacv1.RoleBinding) error {
	err := r.Client.Delete(ctx, right)
	if client.IgnoreNotFound(err) != nil && !kerrors.IsForbidden(err) {
		return errors.Wrapf(err, "cannot take back the right %s", right.Name)
	}
	return nil
}
