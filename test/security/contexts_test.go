package security

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
	"github.com/steading-dev/steading/test/harness"
)

// registered is a Context that stands for the edge, and the Secret with its token.
func registered(t *testing.T, tenant, name string) []client.Object {
	t.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(tenant), Name: name},
		StringData: map[string]string{"token": edgeToken(t, tenant+"-"+name)},
	}
	return []client.Object{s, edgeContext(tenant, name, steading.ContextCredentials{SecretRef: &steading.LocalSecretReference{Name: name}})}
}

// edgeContext is a Context that stands for the edge.
func edgeContext(tenant, name string, with steading.ContextCredentials) *steading.Context {
	return &steading.Context{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(tenant), Name: name},
		Spec:       steading.ContextSpec{Server: suite.Edge.Config().Host, CABundle: suite.Edge.CA(), MaxEnvironments: ptr.To(int32(5)), Credentials: with},
	}
}

// edgeToken makes an account on the edge that may do everything there, until the test is over, and returns a token of it.
func edgeToken(t *testing.T, account string) string {
	t.Helper()
	admin, err := harness.Client(suite.Edge.Config())
	if err != nil {
		t.Fatal(err)
	}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: account}}
	if err := admin.Create(t.Context(), sa); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), sa) })
	everything(t, admin, "security-"+account, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: sa.Namespace, Name: sa.Name})
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(3600))}}
	if err := admin.SubResource("token").Create(t.Context(), sa, r); err != nil {
		t.Fatal(err)
	}
	return r.Status.Token
}

// waitContext until it is as check wants it.
func waitContext(t *testing.T, tenant, name string, check func(*steading.Context) bool) {
	t.Helper()
	c := &steading.Context{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(tenant), Name: name}}
	harness.Eventually(t, "context "+name, func(ctx context.Context) error {
		if err := suite.Admin.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if !check(c) {
			return fmt.Errorf("phase %s, message %q, conditions %+v", c.Status.Phase, c.Status.Message, c.Status.Conditions)
		}
		return nil
	})
}

func running(c *steading.Context) bool {
	return c.Status.Phase == steading.ContextRunning && c.Status.GetCondition("Ready").Status == corev1.ConditionTrue && c.Status.Guarded != nil && *c.Status.Guarded
}

// reached is the reason why the context is reached, or not.
func reached(c *steading.Context) xpv2.ConditionReason {
	return c.Status.GetCondition(steading.ConditionReachable).Reason
}

// says reports whether the context is not reached for that reason, and its message says that.
func says(reason xpv2.ConditionReason, message string) func(*steading.Context) bool {
	return func(c *steading.Context) bool {
		return reached(c) == reason && strings.Contains(c.Status.Message, message)
	}
}
