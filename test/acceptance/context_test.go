package acceptance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"filippo.io/age"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/cluster/seal"
	"github.com/steading-dev/steading/test/harness"
)

// edgeClient is the administrator's client of the edge.
func edgeClient(t *testing.T) client.Client {
	t.Helper()
	c, err := harness.Client(suite.Edge.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// edgeToken makes an account on the edge that may do everything there, and returns a token of it.
func edgeToken(t *testing.T, account string) string {
	t.Helper()
	edge := edgeClient(t)
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: account}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: account}},
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

// tokenSecret holds a context's token, in the tenant's namespace.
func tokenSecret(tenant, name, token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(tenant), Name: name},
		StringData: map[string]string{"token": token},
	}
}

// edgeContext is a Context that stands for the edge, by the token in a Secret.
func edgeContext(tenant, name, secret string) *steading.Context {
	return &steading.Context{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(tenant), Name: name},
		Spec: steading.ContextSpec{
			Server: suite.Edge.Config().Host, CABundle: suite.Edge.CA(), MaxEnvironments: ptr.To(int32(5)),
			Credentials: steading.ContextCredentials{SecretRef: &steading.LocalSecretReference{Name: secret}},
		},
	}
}

// waitContext until it is as check wants it.
func waitContext(t *testing.T, c *steading.Context, what string, check func(*steading.Context) bool) {
	t.Helper()
	harness.Eventually(t, "context "+c.Name+" "+what, func(ctx context.Context) error {
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
	ready := c.Status.GetCondition("Ready")
	return c.Status.Phase == steading.ContextRunning && ready.Status == corev1.ConditionTrue && c.Status.Guarded != nil && *c.Status.Guarded
}

// says reports whether the context's message says that, and whether it is reached for that reason, or not.
func says(reason, message string) func(*steading.Context) bool {
	return func(c *steading.Context) bool {
		r := c.Status.GetCondition(steading.ConditionReachable)
		return string(r.Reason) == reason && strings.Contains(c.Status.Message, message)
	}
}

// TestEnvironmentOnAContext: an environment that names a context runs there, and both go without a trace.
func TestEnvironmentOnAContext(t *testing.T) {
	suite.NewTenant(t, "ctx", steading.TenantSpec{})
	edge := edgeClient(t)
	c := edgeContext("ctx", "edge", "edge-admin")
	suite.Create(t, c)
	waitContext(t, c, "without its Secret", says("CredentialMissing", "there is no Secret tenant-ctx/edge-admin"))
	suite.Create(t, tokenSecret("ctx", "edge-admin", edgeToken(t, "ctx-admin")))
	waitContext(t, c, "running", running)

	e := harness.Environment("ctx", "dev")
	e.Spec.ContextRef = &steading.ContextReference{Name: "edge"}
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	if p := e.Status.Context; p == nil || p.Name != "edge" || p.Reason != steading.PlacementRequested {
		t.Errorf("context %+v", p)
	}
	pods := &corev1.PodList{}
	if err := edge.List(t.Context(), pods, client.InNamespace("ctx-dev")); err != nil || len(pods.Items) == 0 {
		t.Errorf("%d pods on the edge: %v", len(pods.Items), err)
	}
	if err := suite.Admin.Get(t.Context(), client.ObjectKey{Name: "ctx-dev"}, &corev1.Namespace{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("a namespace on the platform's own cluster: %v", err)
	}
	waitContext(t, c, "with one environment", func(c *steading.Context) bool {
		return c.Status.Environments != nil && *c.Status.Environments == steading.ContextUse{Used: 1, Free: 4}
	})

	uids := []string{suite.CompositeUID(t, "ctx", "dev"), suite.ContextUID(t, "ctx", "edge")}
	suite.Delete(t, c)
	waitContext(t, c, "waiting for its environment", func(c *steading.Context) bool {
		b := c.Status.GetCondition(steading.ConditionDeletionBlocked)
		return c.Status.Phase == steading.ContextDeletionBlocked && strings.Contains(b.Message, "environments are on it: dev")
	})
	suite.Delete(t, e)
	suite.WantGone(t, e)
	suite.WantGone(t, c)
	for _, uid := range uids {
		harness.WantNothingOwned(t, suite.Plane.Config(), uid)
		harness.WantNothingOwned(t, suite.Edge.Config(), uid)
	}
	wantNotGuardedFor(t, "ctx-edge")
}

// wantNotGuardedFor expects that the edge's guard, if others still count on it, does not name a context any more.
func wantNotGuardedFor(t *testing.T, context string) {
	t.Helper()
	roles := &rbacv1.ClusterRoleList{}
	if err := edgeClient(t).List(t.Context(), roles, client.MatchingLabels{names.LabelManagedBy: names.ManagedBy}); err != nil {
		t.Fatal(err)
	}
	for _, r := range roles.Items {
		if _, ok := r.Annotations[names.AnnotationGuards+context]; ok || len(r.Annotations) == 0 {
			t.Errorf("left on the edge: ClusterRole %s, annotations %v", r.Name, r.Annotations)
		}
	}
}

// TestContextKeepsTheLastGoodCredential: a token that does not work replaces none that does.
func TestContextKeepsTheLastGoodCredential(t *testing.T) {
	suite.NewTenant(t, "keeps", steading.TenantSpec{})
	s := tokenSecret("keeps", "edge-admin", edgeToken(t, "keeps-admin"))
	c := edgeContext("keeps", "edge", "edge-admin")
	suite.Create(t, s, c)
	waitContext(t, c, "running", running)

	harness.Change(t, &suite, s, func(s *corev1.Secret) { s.Data = map[string][]byte{"token": []byte("wrong")} })
	waitContext(t, c, "with a wrong token", func(c *steading.Context) bool {
		return c.Status.Phase == steading.ContextRunning && c.Status.GetCondition("Ready").Status == corev1.ConditionFalse &&
			strings.Contains(c.Status.Message, "the last good credential stays in use") && strings.Contains(c.Status.Message, "401")
	})
	e := harness.Environment("keeps", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)

	harness.Change(t, &suite, s, func(s *corev1.Secret) { s.Data = map[string][]byte{"token": []byte(edgeToken(t, "keeps-other"))} })
	waitContext(t, c, "with a new token", running)
	suite.Delete(t, e)
	suite.WantGone(t, e)
	suite.Delete(t, c)
	suite.WantGone(t, c)
}

// TestContextSaysWhatIsWrong: each mistake has its reason, and no environment is placed.
func TestContextSaysWhatIsWrong(t *testing.T) {
	suite.NewTenant(t, "wrong", steading.TenantSpec{})
	suite.Create(t, tokenSecret("wrong", "good", edgeToken(t, "wrong-admin")), tokenSecret("wrong", "bad", "no-token"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-wrong", Name: "kubeconfig"}, StringData: map[string]string{"kubeconfig": "apiVersion: v1"}})
	cases := map[string]struct {
		secret  string
		edit    func(*steading.ContextSpec)
		reason  string
		message string
	}{
		"bad-token":  {secret: "bad", reason: "CredentialRefused", message: "401 Unauthorized"},
		"kubeconfig": {secret: "kubeconfig", reason: "CredentialMissing", message: "holds a kubeconfig, which is not accepted"},
		"wrong-ca":   {secret: "good", edit: func(s *steading.ContextSpec) { s.CABundle = suite.Plane.CA() }, reason: "CAMismatch", message: "was not signed by spec.caBundle"},
		"metadata":   {secret: "good", edit: func(s *steading.ContextSpec) { s.Server = "https://169.254.169.254" }, reason: "AddressRefused", message: "169.254.169.254 is a link-local address"},
		"loopback":   {secret: "good", edit: func(s *steading.ContextSpec) { s.Server = "https://127.0.0.2:6443" }, reason: "AddressRefused", message: "127.0.0.2 is a loopback address"},
		"registry":   {secret: "good", edit: func(s *steading.ContextSpec) { s.Server = "https://" + suite.Registry.Host() }, reason: "WrongAnswer", message: "does not speak TLS"},
		"nobody":     {secret: "good", edit: func(s *steading.ContextSpec) { s.Server = "https://127.0.0.1:1" }, reason: "TargetUnreachable", message: "connection refused"},
	}
	for name, tc := range cases {
		c := edgeContext("wrong", name, tc.secret)
		if tc.edit != nil {
			tc.edit(&c.Spec)
		}
		suite.Create(t, c)
	}
	for name, tc := range cases {
		waitContext(t, edgeContext("wrong", name, tc.secret), "refused", says(tc.reason, tc.message))
	}
	e := harness.Environment("wrong", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "not placed", func(e *steading.Environment) bool {
		status, reason, message := harness.Condition(e, "Placed")
		return status == "False" && reason == "NoContextRunning" && strings.Contains(message, "bad-token is not running (CredentialRefused)")
	})
}

// TestContextByCiphertext: ciphertext works for the context that it was made for, and for no other.
func TestContextByCiphertext(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	suite.Create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.AgeIdentity},
		StringData: map[string]string{"identity.txt": id.String()},
	})
	suite.NewTenant(t, "sealed", steading.TenantSpec{})
	hash, err := seal.CASHA256(suite.Edge.CA())
	if err != nil {
		t.Fatal(err)
	}
	token := edgeToken(t, "sealed-admin")
	sealed := func(tenant, name string) *steading.Context {
		c := edgeContext("sealed", name, "")
		p := seal.Plaintext{Binding: seal.Binding{Tenant: tenant, Context: "edge", Server: c.Spec.Server, CASHA256: hash}, Token: token}
		var out bytes.Buffer
		if err := seal.Seal(&out, p, id.Recipient()); err != nil {
			t.Fatal(err)
		}
		c.Spec.Credentials = steading.ContextCredentials{Age: out.String()}
		return c
	}
	good, anothers, copied := sealed("sealed", "edge"), sealed("other", "theirs"), sealed("sealed", "copied")
	suite.Create(t, good, anothers, copied)
	waitContext(t, good, "running", running)
	waitContext(t, anothers, "refused", says("CiphertextRefused", "it was made for another tenant"))
	waitContext(t, copied, "refused", says("CiphertextRefused", "it was made for another context"))
}

// TestTenantDeletedAtOnce: everything that a tenant has is deleted in one moment, in no order.
func TestTenantDeletedAtOnce(t *testing.T) {
	x := suite.NewTenant(t, "atonce", steading.TenantSpec{})
	s := tokenSecret("atonce", "edge-admin", edgeToken(t, "atonce-admin"))
	c := edgeContext("atonce", "edge", "edge-admin")
	suite.Create(t, s, c)
	waitContext(t, c, "running", running)
	e := harness.Environment("atonce", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)

	uids := []string{suite.CompositeUID(t, "atonce", "dev"), suite.ContextUID(t, "atonce", "edge")}
	kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.ContextCredential("atonce", "edge")}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-atonce"}}
	for _, o := range []client.Object{x, c, s, kept, e, ns} {
		suite.Delete(t, o)
	}
	for _, o := range []client.Object{e, c, x, kept, ns} {
		suite.WantGone(t, o)
	}
	for _, uid := range uids {
		harness.WantNothingOwned(t, suite.Plane.Config(), uid)
		harness.WantNothingOwned(t, suite.Edge.Config(), uid)
	}
}

// TestContextComesAndGoes: that a cluster died is seen without polling, and so is that it came back.
func TestContextComesAndGoes(t *testing.T) {
	suite.NewTenant(t, "comes", steading.TenantSpec{})
	c := edgeContext("comes", "edge", "edge-admin")
	suite.Create(t, tokenSecret("comes", "edge-admin", edgeToken(t, "comes-admin")), c)
	waitContext(t, c, "running", running)
	if err := suite.Edge.Supervisor.Stop("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	resumed := false
	resume := func() {
		if !resumed {
			resumed = true
			if err := suite.Edge.Supervisor.Resume(context.Background(), "kube-apiserver"); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(resume)
	waitContext(t, c, "unreachable", func(c *steading.Context) bool {
		return c.Status.Phase == steading.ContextUnreachable && c.Status.GetCondition(steading.ConditionReachable).Reason == steading.ReasonTargetUnreachable
	})
	resume()
	waitContext(t, c, "running again", running)
	suite.Delete(t, c)
	suite.WantGone(t, c)
	if err := suite.Admin.Get(t.Context(), client.ObjectKey{Namespace: names.SystemNamespace, Name: "comes-edge"}, &runtimev1.Cluster{}); err == nil {
		t.Error(errors.New("the cluster is still there"))
	}
}
