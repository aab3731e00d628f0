package harness

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/edgeoperators"
)

// StartOperators runs external-dns and cert-manager on the control plane until the test is over. Their kinds stay.
func (s *Suite) StartOperators(t *testing.T) (*edgeoperators.DNS, *edgeoperators.CertManager) {
	t.Helper()
	s.Define(t, edgeoperators.DNSModule, edgeoperators.CertificateModule)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	dns, err := edgeoperators.StartDNS(ctx, s.Plane.Config(), names.EdgeNamespace)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := edgeoperators.StartCertManager(ctx, s.Plane.Config(), names.EdgeNamespace)
	if err != nil {
		t.Fatal(err)
	}
	return dns, certs
}

// Define an operator's kinds on the control plane. They stay.
func (s *Suite) Define(t *testing.T, modules ...edgeoperators.Module) {
	t.Helper()
	for _, m := range modules {
		crds, err := edgeoperators.Definitions(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Plane.Apply(t.Context(), crds...); err != nil {
			t.Fatal(err)
		}
	}
}

// IssueCertificates has the platform's config name an issuer, until the test is over.
func (s *Suite) IssueCertificates(t *testing.T) {
	t.Helper()
	s.Configure(t, func(p *runtimev1.ProviderConfigSpec) {
		p.Certificates = &runtimev1.Certificates{IssuerRef: runtimev1.IssuerReference{Name: "letsencrypt"}}
	})
}

// Configure edits the platform's config, until the test is over.
func (s *Suite) Configure(t *testing.T, edit func(*runtimev1.ProviderConfigSpec)) {
	t.Helper()
	var before runtimev1.ProviderConfigSpec
	c := &runtimev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig}}
	Change(t, s, c, func(c *runtimev1.ClusterProviderConfig) {
		before = *c.Spec.DeepCopy()
		edit(&c.Spec)
	})
	t.Cleanup(func() {
		ctx := context.Background()
		// Its status is written meanwhile.
		for range 10 {
			if err := s.Admin.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
				t.Error(err)
				return
			}
			c.Spec = before
			if s.Admin.Update(ctx, c) == nil {
				return
			}
		}
		t.Error("cannot put the config back")
	})
}

// Exposed reports whether an environment has a host and a certificate.
func Exposed(e *steading.Environment) bool {
	host, _, _ := Condition(e, string(steading.ConditionExposed))
	certificate, _, _ := Condition(e, string(steading.ConditionCertificateReady))
	return host == "True" && certificate == "True"
}

// WantRoute expects an environment's route on the edge, for its host and with a certificate that a client accepts.
func (s *Suite) WantRoute(t *testing.T, tenant, environment, host string, certs *edgeoperators.CertManager) {
	t.Helper()
	edge, namespace := s.EdgeClient(t), names.EnvironmentNamespace(tenant, environment)
	route := &networkingv1.Ingress{}
	if err := edge.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: names.Route(tenant)}, route); err != nil {
		t.Fatal(err)
	}
	if len(route.Spec.Rules) != 1 || route.Spec.Rules[0].Host != host || len(route.Spec.TLS) != 1 {
		t.Fatalf("the route is %+v", route.Spec)
	}
	secret := &corev1.Secret{}
	if err := edge.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: route.Spec.TLS[0].SecretName}, secret); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: certs.Roots()}); err != nil {
		t.Errorf("a client does not accept the certificate: %v", err)
	}
}
