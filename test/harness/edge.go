package harness

import (
	"context"
	"fmt"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// EdgeClient is the administrator's client of the edge.
func (s *Suite) EdgeClient(t *testing.T) client.Client {
	t.Helper()
	c, err := Client(s.Edge.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// EdgeToken makes an account on the edge that may do everything there, until the test is over, and returns a token of it.
func (s *Suite) EdgeToken(t *testing.T, account string) string {
	t.Helper()
	edge := s.EdgeClient(t)
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: account}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: sa.Namespace, Name: sa.Name}},
	}
	for _, o := range []client.Object{sa, binding} {
		if err := edge.Create(t.Context(), o); err != nil {
			t.Fatalf("cannot create %T on the edge: %v", o, err)
		}
		t.Cleanup(func() { _ = edge.Delete(context.Background(), o) })
	}
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(3600))}}
	if err := edge.SubResource("token").Create(t.Context(), sa, r); err != nil {
		t.Fatalf("cannot get a token of the edge: %v", err)
	}
	return r.Status.Token
}

// TokenSecret holds a context's token, in the tenant's namespace.
func TokenSecret(tenant, name, token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(tenant), Name: name},
		StringData: map[string]string{"token": token},
	}
}

// BySecret is a context's credential in a Secret of the tenant's namespace.
func BySecret(name string) steading.ContextCredentials {
	return steading.ContextCredentials{SecretRef: &steading.LocalSecretReference{Name: name}}
}

// EdgeContext is a Context claim that stands for the edge and takes five environments.
func (s *Suite) EdgeContext(tenant, name string, with steading.ContextCredentials) *steading.Context {
	return &steading.Context{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(tenant), Name: name},
		Spec:       steading.ContextSpec{Server: s.Edge.Config().Host, CABundle: s.Edge.CA(), MaxEnvironments: ptr.To(int32(5)), Credentials: with},
	}
}

// WaitContext waits until a context is as check wants it.
func (s *Suite) WaitContext(t *testing.T, c *steading.Context, what string, check func(*steading.Context) bool) {
	t.Helper()
	Eventually(t, "context "+c.Name+" "+what, func(ctx context.Context) error {
		if err := s.Reload(ctx, c); err != nil {
			return err
		}
		if !check(c) {
			return fmt.Errorf("phase %s, message %q, conditions %+v", c.Status.Phase, c.Status.Message, c.Status.Conditions)
		}
		return nil
	})
}

// ContextRunning reports whether a context takes environments, and guards them.
func ContextRunning(c *steading.Context) bool {
	ready := c.Status.GetCondition("Ready")
	return c.Status.Phase == steading.ContextRunning && ready.Status == corev1.ConditionTrue && c.Status.Guarded != nil && *c.Status.Guarded
}

// Reached is the reason why a context is reached, or not.
func Reached(c *steading.Context) xpv2.ConditionReason {
	return c.Status.GetCondition(steading.ConditionReachable).Reason
}

// ContextSays reports whether a context is reached for that reason, or not, and its message says that.
func ContextSays(reason xpv2.ConditionReason, message string) func(*steading.Context) bool {
	return func(c *steading.Context) bool {
		return Reached(c) == reason && strings.Contains(c.Status.Message, message)
	}
}

// WantNotGuardedFor expects that the edge's guard, if others still count on it, does not name a context (<tenant>-<context>)
// any more.
func (s *Suite) WantNotGuardedFor(t *testing.T, context string) {
	t.Helper()
	roles := &rbacv1.ClusterRoleList{}
	if err := s.EdgeClient(t).List(t.Context(), roles, client.MatchingLabels{names.LabelManagedBy: names.ManagedBy}); err != nil {
		t.Fatal(err)
	}
	for _, r := range roles.Items {
		if _, ok := r.Annotations[names.AnnotationGuards+context]; ok || len(r.Annotations) == 0 {
			t.Errorf("left on the edge: ClusterRole %s, annotations %v", r.Name, r.Annotations)
		}
	}
}
