package acceptance

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
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
	c := suite.EdgeContext("shown", "edge", harness.BySecret("edge-admin"))
	c.Spec.Zone, c.Spec.Ingress = "services.example.com", &steading.ContextIngress{Addresses: []string{"203.0.113.7"}, ClassName: "traefik"}
	suite.Create(t, harness.TokenSecret("shown", "edge-admin", suite.EdgeToken(t, "shown-admin")), c)
	suite.WaitContext(t, c, "running", harness.ContextRunning)
	suite.IssueCertificates(t)

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
	suite.WantRoute(t, "shown", "dev", exposedHost, certs)

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

// startOperators installs external-dns and cert-manager on the control plane, until the test is over.
func startOperators(t *testing.T) (*edgeoperators.DNS, *edgeoperators.CertManager) {
	t.Helper()
	dns, certs := suite.StartOperators(t)
	t.Cleanup(func() {
		ctx := context.Background()
		for _, m := range []edgeoperators.Module{edgeoperators.DNSModule, edgeoperators.CertificateModule} {
			crds, err := edgeoperators.Definitions(ctx, m)
			if err != nil {
				t.Error(err)
			}
			for _, crd := range crds {
				_ = suite.Admin.Delete(ctx, crd)
			}
		}
	})
	return dns, certs
}

// wantNotExposed expects names, certificate and route to be gone, and the environment to run on.
func wantNotExposed(t *testing.T, dns *edgeoperators.DNS, uid string) {
	t.Helper()
	edge := suite.EdgeClient(t)
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
