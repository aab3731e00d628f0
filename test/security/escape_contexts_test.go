package security

import (
	"strings"
	"testing"

	"filippo.io/age"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/cluster/seal"
	"github.com/steading-dev/steading/test/harness"
)

// allowTargets sets the addresses that the operator allows contexts to be at, until the test is over.
func allowTargets(t *testing.T, cidrs ...string) {
	t.Helper()
	suite.Configure(t, func(s *runtimev1.ProviderConfigSpec) { s.AllowedTargets = cidrs })
}

// TestContextsReachNoInsides: a context at an address behind which the platform's own insides are is refused, and by
// nothing but the list of addresses: a context at the loopback address is reached as soon as that is allowed.
func TestContextsReachNoInsides(t *testing.T) {
	suite.NewTenant(t, "insides", steading.TenantSpec{})
	allowTargets(t)
	objects := registered(t, "insides", "edge")
	suite.Create(t, objects...)
	port := suite.Edge.Config().Host[strings.LastIndex(suite.Edge.Config().Host, ":"):]
	cases := map[string]struct{ server, says string }{
		"metadata":      {"https://169.254.169.254", "169.254.169.254 is a link-local address"},
		"metadata-six":  {"https://[fd00:ec2::254]", "fd00:ec2::254 is the address of a cloud's metadata service"},
		"metadata-ali":  {"https://100.100.100.200", "100.100.100.200 is the address of a cloud's metadata service"},
		"translated":    {"https://[64:ff9b::a9fe:a9fe]", "169.254.169.254 is a link-local address"},
		"mapped":        {"https://[::ffff:127.0.0.1]" + port, "127.0.0.1 is a loopback address"},
		"loopback":      {"https://127.8.9.1" + port, "127.8.9.1 is a loopback address"},
		"loopback-six":  {"https://[::1]" + port, "::1 is a loopback address"},
		"named":         {"https://localhost" + port, "is a loopback address"},
		"nowhere":       {"https://0.0.0.0" + port, "0.0.0.0 is no address of a host"},
		"control-plane": {suite.Plane.Config().Host, "127.0.0.1 is a loopback address"},
	}
	for name, tc := range cases {
		c := suite.EdgeContext("insides", name, harness.BySecret("edge"))
		c.Spec.Server = tc.server
		suite.Create(t, c)
	}
	for name, tc := range cases {
		waitContext(t, "insides", name, harness.ContextSays(steading.ReasonAddressRefused, tc.says))
	}
	waitContext(t, "insides", "edge", func(c *steading.Context) bool { return harness.Reached(c) == steading.ReasonAddressRefused })
	allowTargets(t, "127.0.0.1/32")
	waitContext(t, "insides", "edge", harness.ContextRunning)
	waitContext(t, "insides", "mapped", harness.ContextRunning)
	// The token is the edge's.
	waitContext(t, "insides", "control-plane", func(c *steading.Context) bool {
		return harness.Reached(c) == steading.ReasonCAMismatch || harness.Reached(c) == steading.ReasonCredentialRefused
	})
	waitContext(t, "insides", "loopback", func(c *steading.Context) bool { return harness.Reached(c) == steading.ReasonAddressRefused })
}

// TestAnothersCiphertext: ciphertext that a tenant found in another's repository is of no use to it, nor at another server or
// with another authority. The same token sealed for itself is.
func TestAnothersCiphertext(t *testing.T) {
	id := suite.AgeIdentity(t)
	suite.NewTenant(t, "thief", steading.TenantSpec{})
	token := suite.EdgeToken(t, "thief")
	stranger, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		credentials steading.ContextCredentials
		says        string
	}{
		"anothers": {harness.Sealed(t, id, suite.ForEdge(t, "vic", "anothers", token)), "it was made for another tenant"},
		"renamed":  {harness.Sealed(t, id, suite.ForEdge(t, "thief", "edge", token)), "it was made for another context"},
		"elsewhere": {harness.Sealed(t, id, func() seal.Plaintext {
			p := suite.ForEdge(t, "thief", "elsewhere", token)
			p.Server = "https://203.0.113.7:6443"
			return p
		}()), "it was made for another server"},
		"other-ca": {harness.Sealed(t, id, func() seal.Plaintext {
			p := suite.ForEdge(t, "thief", "other-ca", token)
			p.CASHA256 = strings.Repeat("0", 64)
			return p
		}()), "it was made for another caSHA256"},
		"stranger": {harness.Sealed(t, stranger, suite.ForEdge(t, "thief", "stranger", token)), "it was not made to this platform's recipient"},
		"cut":      {steading.ContextCredentials{Age: "-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n"}, "it is not armored age ciphertext, or was cut or changed"},
	}
	for name, tc := range cases {
		suite.Create(t, suite.EdgeContext("thief", name, tc.credentials))
	}
	for name, tc := range cases {
		waitContext(t, "thief", name, harness.ContextSays(steading.ReasonCiphertextRefused, tc.says))
	}
	own := &steading.Context{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-thief", Name: "anothers"}}
	harness.Change(t, &suite, own, func(c *steading.Context) {
		c.Spec.Credentials = harness.Sealed(t, id, suite.ForEdge(t, "thief", "anothers", token))
	})
	waitContext(t, "thief", "anothers", harness.ContextRunning)
}
