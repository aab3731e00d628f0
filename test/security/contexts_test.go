package security

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// registered is a Context that stands for the edge, and the Secret with its token.
func registered(t *testing.T, tenant, name string) []client.Object {
	t.Helper()
	return []client.Object{
		harness.TokenSecret(tenant, name, suite.EdgeToken(t, tenant+"-"+name)),
		suite.EdgeContext(tenant, name, harness.BySecret(name)),
	}
}

// waitContext until it is as check wants it.
func waitContext(t *testing.T, tenant, name string, check func(*steading.Context) bool) {
	t.Helper()
	c := &steading.Context{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(tenant), Name: name}}
	suite.WaitContext(t, c, "as it has to be", check)
}
