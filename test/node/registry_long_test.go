//go:build node && long

package node

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/authority"
	"github.com/steading-dev/steading/test/harness"
)

// privateCA signs the certificate of a registry that charts are taken from.
var privateCA *authority.Authority

func init() {
	var err error
	if privateCA, err = authority.New("private CA"); err != nil {
		panic(err)
	}
	options.RegistryCA = privateCA.PEM()
}

// TestARegistryWithAPrivateCA: provider-runtime takes charts from a registry whose certificate was signed by the CA that the
// install chart was told of, and from none whose was signed by another.
func TestARegistryWithAPrivateCA(t *testing.T) {
	stranger, err := authority.New("stranger")
	if err != nil {
		t.Fatal(err)
	}
	const template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}\"}\n"
	var prefixes []runtimev1.ComponentRepository
	for name, by := range map[string]*authority.Authority{"known": privateCA, "unknown": stranger} {
		harness.PushChart(t, suite.Registry.Host()+"/private/"+name+"/"+name, name, "1.0.0", template)
		prefixes = append(prefixes, runtimev1.ComponentRepository{Prefix: serveRegistry(t, by) + "/private/" + name})
	}
	config := &runtimev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig}}
	before := harness.Get(t, &suite, config).Spec.Components
	harness.Change(t, &suite, config, func(c *runtimev1.ClusterProviderConfig) { c.Spec.Components = slices.Concat(prefixes, before) })
	t.Cleanup(func() {
		after := config.DeepCopy() // The test's context is over by now, which harness.Change waits by.
		after.Spec.Components = before
		if err := suite.Admin.Patch(context.Background(), after, client.MergeFrom(config)); err != nil {
			t.Errorf("cannot take the registries out again: %v", err)
		}
	})
	suite.NewTenant(t, "private", steading.TenantSpec{})

	known := harness.Environment("private", "known")
	known.Spec.Components = []steading.Component{{Name: "it", Chart: "known", Version: "1.0.0"}}
	unknown := harness.Environment("private", "unknown")
	unknown.Spec.Components = []steading.Component{{Name: "it", Chart: "unknown", Version: "1.0.0"}}
	suite.Create(t, known, unknown)
	suite.WaitFor(t, known, "ready", harness.Ready)
	suite.WaitFor(t, unknown, "refused", func(e *steading.Environment) bool {
		_, reason, message := harness.Condition(e, "Admitted")
		return reason == string(steading.ReasonChartNotResolved) && strings.Contains(message, "certificate signed by unknown authority")
	})
}

// serveRegistry of the node over TLS, with a certificate by this authority. It returns its host.
func serveRegistry(t *testing.T, by *authority.Authority) string {
	t.Helper()
	certificate, err := by.Server(suite.Plane.Address())
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(suite.Plane.Address(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: suite.Registry.Host()})
	s := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}}
	go s.ServeTLS(l, "", "") //nolint:errcheck // Until it is closed.
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}
