//go:build long

package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/test/harness"
)

// TestContextByExternalSecret fetches a context's credential with the real External Secrets operator, from a store of the
// tenant's own. What the operator does not find is said in its words.
func TestContextByExternalSecret(t *testing.T) {
	runExternalSecrets(t)
	suite.NewTenant(t, "vaulted", steading.TenantSpec{})
	token := suite.EdgeToken(t, "vaulted-admin")
	store := fakeStore("tenant-vaulted", map[string]string{"contexts/edge": fmt.Sprintf(`{"token": %q}`, token)})
	harness.Eventually(t, "the operator's kinds are served", func(ctx context.Context) error { return suite.Admin.Create(ctx, store) })

	lost := suite.EdgeContext("vaulted", "lost", byExternalSecret("contexts/lost"))
	edge := suite.EdgeContext("vaulted", "edge", byExternalSecret("contexts/edge"))
	suite.Create(t, lost, edge)
	suite.WaitContext(t, edge, "running", harness.ContextRunning)
	suite.WaitContext(t, lost, "without a credential", harness.ContextSays("CredentialMissing", "cannot be fetched from SecretStore vault, key contexts/lost"))

	uid := suite.ContextUID(t, "vaulted", "edge")
	suite.Delete(t, edge)
	suite.WantGone(t, edge)
	harness.WantNothingOwned(t, suite.Plane.Config(), uid)
	fetched := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-vaulted", Name: names.ExternalCredential("edge")}}
	suite.WantGone(t, fetched)
}

func byExternalSecret(key string) steading.ContextCredentials {
	return steading.ContextCredentials{ExternalSecret: &steading.ExternalCredential{StoreRef: steading.StoreReference{Kind: "SecretStore", Name: "vault"}, Key: key}}
}

// fakeStore is a SecretStore of the operator's provider that holds its secrets itself.
func fakeStore(namespace string, content map[string]string) *unstructured.Unstructured {
	var data []any
	for key, value := range content {
		data = append(data, map[string]any{"key": key, "value": value})
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"provider": map[string]any{"fake": map[string]any{"data": data}}}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "external-secrets.io", Version: "v1", Kind: "SecretStore"})
	u.SetNamespace(namespace)
	u.SetName("vault")
	return u
}

// runExternalSecrets installs the operator's kinds and runs its controller, as long as the test.
func runExternalSecrets(t *testing.T) {
	t.Helper()
	tools, err := local.BuildTools(t.Context(), func(line string) { t.Log(line) }, local.ExternalSecrets)
	if err != nil {
		t.Fatal(err)
	}
	if err := suite.Plane.ApplyFiles(t.Context(), tools.Asset(local.ExternalSecrets, "config/crds/bases")); err != nil {
		t.Fatal(err)
	}
	port, err := suite.Plane.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	metrics := fmt.Sprintf("127.0.0.1:%d", port)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = suite.Plane.Supervisor.Start(ctx, local.Component{
		Name: "external-secrets", Path: tools.Path(local.ExternalSecrets),
		Args: []string{"--metrics-addr=" + metrics, "--concurrent=2"},
		Env:  []string{"KUBECONFIG=" + suite.Plane.Kubeconfig()},
		Ready: func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metrics+"/metrics", http.NoBody)
			if err != nil {
				return err
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			return res.Body.Close()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := suite.Plane.Supervisor.Stop("external-secrets"); err != nil {
			t.Error(err)
		}
	})
}
