package acceptance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/edgeoperators"
	"github.com/steading-dev/steading/test/harness"
)

// exposedHost is the host of the environment that these tests expose.
const exposedHost = "mcp.shown-dev.services.example.com"

// condition reports whether an environment's condition has a status and a reason.
func condition(kind, status, reason string) func(*steading.Environment) bool {
	return func(e *steading.Environment) bool {
		s, r, _ := harness.Condition(e, kind)
		return s == status && r == reason
	}
}

// TestEnvironmentExposed: an environment on a context is reached at the context's address, by names and with a certificate
// that are made on the control plane, whose operators come late and go early. Nothing of that holds up the environment.
func TestEnvironmentExposed(t *testing.T) {
	suite.NewTenant(t, "shown", steading.TenantSpec{})
	c := edgeContext("shown", "edge", "edge-admin")
	c.Spec.Zone, c.Spec.Ingress = "services.example.com", &steading.ContextIngress{Addresses: []string{"203.0.113.7"}, ClassName: "traefik"}
	suite.Create(t, tokenSecret("shown", "edge-admin", edgeToken(t, "shown-admin")), c)
	waitContext(t, c, "running", running)
	issueCertificates(t)

	e := harness.Environment("shown", "dev")
	e.Spec.ContextRef = &steading.ContextReference{Name: "edge"}
	e.Spec.Expose = steading.Expose{Services: []string{"mcp"}}
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	suite.WaitFor(t, e, "without operators", condition("Exposed", "False", "OperatorMissing"))
	suite.WaitFor(t, e, "without operators", condition("CertificateReady", "False", "OperatorMissing"))
	if e.Status.Phase != steading.EnvironmentRunning || e.Status.Hostname != "" {
		t.Errorf("%s, hostname %q", harness.Describe(e), e.Status.Hostname)
	}

	dns, certs := startOperators(t)
	suite.WaitFor(t, e, "exposed", condition("Exposed", "True", "Exposed"))
	suite.WaitFor(t, e, "certified", condition("CertificateReady", "True", "Issued"))
	if e.Status.Hostname != exposedHost {
		t.Errorf("hostname %q", e.Status.Hostname)
	}
	if got := dns.Records(exposedHost); !slices.Equal(got, []string{"A 203.0.113.7"}) {
		t.Errorf("the host resolves to %v", got)
	}
	wantRoute(t, certs)

	uid := suite.CompositeUID(t, "shown", "dev")
	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Expose.Enabled = ptr.To(false) })
	suite.WaitFor(t, e, "not exposed", condition("Exposed", "False", "NotExposed"))
	wantNotExposed(t, dns, uid)
	if !harness.Ready(e) || e.Status.Phase != steading.EnvironmentRunning {
		t.Errorf("it does not run on: %s", harness.Describe(e))
	}
	suite.Delete(t, e)
	suite.WantGone(t, e)

	wantGoneWithoutOperator(t, dns)
}

// wantGoneWithoutOperator deletes an environment that is exposed, and whose operator is gone: external-dns is, with its kind.
func wantGoneWithoutOperator(t *testing.T, dns *edgeoperators.DNS) {
	t.Helper()
	e := harness.Environment("shown", "late")
	e.Spec.ContextRef = &steading.ContextReference{Name: "edge"}
	e.Spec.Expose = steading.Expose{Services: []string{"mcp"}}
	suite.Create(t, e)
	suite.WaitFor(t, e, "certified", condition("CertificateReady", "True", "Issued"))
	uid := suite.CompositeUID(t, "shown", "late")

	dns.Gone(true)
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName("dnsendpoints.externaldns.k8s.io")
	suite.Delete(t, definition)
	suite.WaitFor(t, e, "without its DNS operator", condition("Exposed", "False", "OperatorMissing"))
	suite.Delete(t, e)
	suite.WantGone(t, e)
	harness.WantNothingOwned(t, suite.Plane.Config(), uid)
	harness.WantNothingOwned(t, suite.Edge.Config(), uid)
	left := &runtimev1.EdgeRemainderList{}
	if err := suite.Admin.List(t.Context(), left); err != nil || len(left.Items) > 0 {
		t.Errorf("something is left to be cleaned up: %+v, %v", left.Items, err)
	}
}

// issueCertificates has the operator name an issuer, until the test is over.
func issueCertificates(t *testing.T) {
	t.Helper()
	set := func(c *runtimev1.Certificates) {
		config := &runtimev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig}}
		harness.Change(t, &suite, config, func(p *runtimev1.ClusterProviderConfig) { p.Spec.Certificates = c })
	}
	set(&runtimev1.Certificates{IssuerRef: runtimev1.IssuerReference{Name: "letsencrypt"}})
	t.Cleanup(func() {
		config := &runtimev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig}}
		_ = suite.Admin.Patch(context.Background(), config, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"certificates":null}}`)))
	})
}

// startOperators installs external-dns and cert-manager on the control plane, until the test is over.
func startOperators(t *testing.T) (*edgeoperators.DNS, *edgeoperators.CertManager) {
	t.Helper()
	for _, m := range []edgeoperators.Module{edgeoperators.DNSModule, edgeoperators.CertificateModule} {
		crds, err := edgeoperators.Definitions(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if err := suite.Plane.Apply(t.Context(), crds...); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for _, crd := range crds {
				_ = suite.Admin.Delete(context.Background(), crd)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	dns, err := edgeoperators.StartDNS(ctx, suite.Plane.Config(), names.EdgeNamespace)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := edgeoperators.StartCertManager(ctx, suite.Plane.Config(), names.EdgeNamespace)
	if err != nil {
		t.Fatal(err)
	}
	return dns, certs
}

// wantRoute expects the environment's route on the edge, with a certificate that a client accepts, and no credential for
// either there.
func wantRoute(t *testing.T, certs *edgeoperators.CertManager) {
	t.Helper()
	edge := edgeClient(t)
	route := &networkingv1.Ingress{}
	if err := edge.Get(t.Context(), client.ObjectKey{Namespace: "shown-dev", Name: "shown-edge"}, route); err != nil {
		t.Fatal(err)
	}
	if len(route.Spec.Rules) != 1 || route.Spec.Rules[0].Host != exposedHost || len(route.Spec.TLS) != 1 {
		t.Fatalf("the route is %+v", route.Spec)
	}
	secret := &corev1.Secret{}
	if err := edge.Get(t.Context(), client.ObjectKey{Namespace: "shown-dev", Name: route.Spec.TLS[0].SecretName}, secret); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: exposedHost, Roots: certs.Roots()}); err != nil {
		t.Errorf("a client does not accept the certificate: %v", err)
	}
}

// wantNotExposed expects names, certificate and route to be gone, and the environment to run on.
func wantNotExposed(t *testing.T, dns *edgeoperators.DNS, uid string) {
	t.Helper()
	edge := edgeClient(t)
	harness.Eventually(t, "nothing exposes the environment", func(ctx context.Context) error {
		if got := dns.Records(exposedHost); len(got) > 0 {
			return fmt.Errorf("the host resolves to %v", got)
		}
		mine := client.MatchingLabels{names.LabelComposite: uid}
		routes, secrets, edges := &networkingv1.IngressList{}, &corev1.SecretList{}, &runtimev1.EdgeList{}
		for c, lists := range map[client.Client][]client.ObjectList{edge: {routes}, suite.Admin: {secrets, edges}} {
			for _, l := range lists {
				if err := c.List(ctx, l, mine); err != nil {
					return err
				}
			}
		}
		if n := len(routes.Items) + len(secrets.Items) + len(edges.Items); n > 0 {
			return fmt.Errorf("%d objects are left", n)
		}
		ns := &corev1.Namespace{}
		if err := edge.Get(ctx, client.ObjectKey{Name: "shown-dev"}, ns); err != nil {
			return err
		}
		if suffix, ok := ns.Annotations[names.AnnotationHostSuffix]; ok {
			return fmt.Errorf("the namespace may route hosts that end in %s", suffix)
		}
		return nil
	})
}
