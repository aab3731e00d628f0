package harness

import (
	"bytes"
	"testing"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/cluster/seal"
)

// AgeIdentity gives the platform one to which ciphertext is made, until the test is over.
func (s *Suite) AgeIdentity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	s.Create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.AgeIdentity},
		StringData: map[string]string{"identity.txt": id.String()},
	})
	return id
}

// ForEdge is what a token of the edge is sealed for: a tenant's context.
func (s *Suite) ForEdge(t *testing.T, tenant, context, token string) seal.Plaintext {
	t.Helper()
	hash, err := seal.CASHA256(s.Edge.CA())
	if err != nil {
		t.Fatal(err)
	}
	return seal.Plaintext{Binding: seal.Binding{Tenant: tenant, Context: context, Server: s.Edge.Config().Host, CASHA256: hash}, Token: token}
}

// Sealed is a context's credential by ciphertext.
func Sealed(t *testing.T, to *age.X25519Identity, p seal.Plaintext) steading.ContextCredentials {
	t.Helper()
	b := &bytes.Buffer{}
	if err := seal.Seal(b, p, to.Recipient()); err != nil {
		t.Fatal(err)
	}
	return steading.ContextCredentials{Age: b.String()}
}
