package acceptance

import (
	"context"
	"errors"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// TestEnvironmentOnAContext: an environment that names a context runs there, and both go without a trace.
func TestEnvironmentOnAContext(t *testing.T) {
	suite.NewTenant(t, "ctx", steading.TenantSpec{})
	edge := suite.EdgeClient(t)
	c := suite.EdgeContext("ctx", "edge", harness.BySecret("edge-admin"))
	suite.Create(t, c)
	suite.WaitContext(t, c, "without its Secret", harness.ContextSays("CredentialMissing", "there is no Secret tenant-ctx/edge-admin"))
	suite.Create(t, harness.TokenSecret("ctx", "edge-admin", suite.EdgeToken(t, "ctx-admin")))
	suite.WaitContext(t, c, "running", harness.ContextRunning)

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
	suite.WaitContext(t, c, "with one environment", func(c *steading.Context) bool {
		return c.Status.Environments != nil && *c.Status.Environments == steading.ContextUse{Used: 1, Free: 4}
	})

	uids := []string{suite.CompositeUID(t, "ctx", "dev"), suite.ContextUID(t, "ctx", "edge")}
	suite.Delete(t, c)
	suite.WaitContext(t, c, "waiting for its environment", func(c *steading.Context) bool {
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
	suite.WantNotGuardedFor(t, "ctx-edge")
}

// TestContextKeepsTheLastGoodCredential: a token that does not work replaces none that does.
func TestContextKeepsTheLastGoodCredential(t *testing.T) {
	suite.NewTenant(t, "keeps", steading.TenantSpec{})
	s := harness.TokenSecret("keeps", "edge-admin", suite.EdgeToken(t, "keeps-admin"))
	c := suite.EdgeContext("keeps", "edge", harness.BySecret("edge-admin"))
	suite.Create(t, s, c)
	suite.WaitContext(t, c, "running", harness.ContextRunning)

	harness.Change(t, &suite, s, func(s *corev1.Secret) { s.Data = map[string][]byte{"token": []byte("wrong")} })
	suite.WaitContext(t, c, "with a wrong token", func(c *steading.Context) bool {
		return c.Status.Phase == steading.ContextRunning && c.Status.GetCondition("Ready").Status == corev1.ConditionFalse &&
			strings.Contains(c.Status.Message, "the last good credential stays in use") && strings.Contains(c.Status.Message, "401")
	})
	e := harness.Environment("keeps", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)

	harness.Change(t, &suite, s, func(s *corev1.Secret) { s.Data = map[string][]byte{"token": []byte(suite.EdgeToken(t, "keeps-other"))} })
	suite.WaitContext(t, c, "with a new token", harness.ContextRunning)
	suite.Delete(t, e)
	suite.WantGone(t, e)
	suite.Delete(t, c)
	suite.WantGone(t, c)
}

// TestContextSaysWhatIsWrong: each mistake has its reason, and no environment is placed.
func TestContextSaysWhatIsWrong(t *testing.T) {
	suite.NewTenant(t, "wrong", steading.TenantSpec{})
	suite.Create(t, harness.TokenSecret("wrong", "good", suite.EdgeToken(t, "wrong-admin")), harness.TokenSecret("wrong", "bad", "no-token"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-wrong", Name: "kubeconfig"}, StringData: map[string]string{"kubeconfig": "apiVersion: v1"}})
	cases := map[string]struct {
		secret  string
		edit    func(*steading.ContextSpec)
		reason  xpv2.ConditionReason
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
		c := suite.EdgeContext("wrong", name, harness.BySecret(tc.secret))
		if tc.edit != nil {
			tc.edit(&c.Spec)
		}
		suite.Create(t, c)
	}
	for name, tc := range cases {
		suite.WaitContext(t, suite.EdgeContext("wrong", name, harness.BySecret(tc.secret)), "refused", harness.ContextSays(tc.reason, tc.message))
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
	id := suite.AgeIdentity(t)
	suite.NewTenant(t, "sealed", steading.TenantSpec{})
	token := suite.EdgeToken(t, "sealed-admin")
	sealed := func(tenant, name string) *steading.Context {
		return suite.EdgeContext("sealed", name, harness.Sealed(t, id, suite.ForEdge(t, tenant, "edge", token)))
	}
	good, anothers, copied := sealed("sealed", "edge"), sealed("other", "theirs"), sealed("sealed", "copied")
	suite.Create(t, good, anothers, copied)
	suite.WaitContext(t, good, "running", harness.ContextRunning)
	suite.WaitContext(t, anothers, "refused", harness.ContextSays("CiphertextRefused", "it was made for another tenant"))
	suite.WaitContext(t, copied, "refused", harness.ContextSays("CiphertextRefused", "it was made for another context"))
}

// TestTenantDeletedAtOnce: everything that a tenant has is deleted in one moment, in no order.
func TestTenantDeletedAtOnce(t *testing.T) {
	x := suite.NewTenant(t, "atonce", steading.TenantSpec{})
	s := harness.TokenSecret("atonce", "edge-admin", suite.EdgeToken(t, "atonce-admin"))
	c := suite.EdgeContext("atonce", "edge", harness.BySecret("edge-admin"))
	suite.Create(t, s, c)
	suite.WaitContext(t, c, "running", harness.ContextRunning)
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
	c := suite.EdgeContext("comes", "edge", harness.BySecret("edge-admin"))
	suite.Create(t, harness.TokenSecret("comes", "edge-admin", suite.EdgeToken(t, "comes-admin")), c)
	suite.WaitContext(t, c, "running", harness.ContextRunning)
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
	suite.WaitContext(t, c, "unreachable", func(c *steading.Context) bool {
		return c.Status.Phase == steading.ContextUnreachable && c.Status.GetCondition(steading.ConditionReachable).Reason == steading.ReasonTargetUnreachable
	})
	resume()
	suite.WaitContext(t, c, "running again", harness.ContextRunning)
	suite.Delete(t, c)
	suite.WantGone(t, c)
	if err := suite.Admin.Get(t.Context(), client.ObjectKey{Namespace: names.SystemNamespace, Name: "comes-edge"}, &runtimev1.Cluster{}); err == nil {
		t.Error(errors.New("the cluster is still there"))
	}
}
