package edge_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/test/fakes/edgeoperators"
	"github.com/steading-dev/steading/test/harness"
)

// TestOnAPlane tells the story of a platform whose operators come, fail and go.
func TestOnAPlane(t *testing.T) {
	b := newBench(t)
	if !t.Run("operators that are missing are a verdict, and noticed when they come", b.testOperatorsCome) {
		return
	}
	t.Run("what drifts is repaired", b.testDrift)
	t.Run("a host that is taken comes free", b.testHostTaken)
	t.Run("a certificate that is never issued says why", b.testNeverIssued)
	t.Run("routes by a gateway", b.testGateway)
	t.Run("what cannot be cleaned up within a minute goes to a remainder", b.testRemainder)
	t.Run("operators that go do not hold up a deletion", b.testOperatorsGo)
}

func (b *bench) testOperatorsCome(t *testing.T) {
	e := b.edge(t, "first")
	b.wait(t, e, "OperatorMissing", "OperatorMissing")
	var err error
	if b.dns, err = edgeoperators.StartDNS(context.Background(), b.plane.Config(), names.EdgeNamespace); err != nil {
		t.Fatal(err)
	}
	if b.certs, err = edgeoperators.StartCertManager(context.Background(), b.plane.Config(), names.EdgeNamespace); err != nil {
		t.Fatal(err)
	}
	b.define(t, edgeoperators.DNSModule)
	b.wait(t, e, "Exposed", "OperatorMissing")
	b.define(t, edgeoperators.CertificateModule)
	b.wait(t, e, "Exposed", "Issued")
	if !kit.IsReady(e) {
		t.Errorf("it is not ready: %+v", e.Status)
	}
	if got, want := b.dns.Records(host("first")), []string{"A 203.0.113.7", "AAAA 2001:db8::7"}; !slices.Equal(got, want) {
		t.Errorf("records: got %v, want %v", got, want)
	}
	b.wantServed(t, e)
	b.wantTold(t, "first", "Exposed", "Issued", "OperatorMissing")
	b.wantRest(t, e)
	b.deleteEdge(t, e)
	b.waitGone(t, e)
	b.wantNothingOwned(t, e.Spec.ForProvider.Identity)
	harness.Eventually(t, "the records are gone", func(context.Context) error {
		if got := b.dns.Records(host("first")); len(got) > 0 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

// wantServed verifies the certificate that the route has, as a client would.
func (b *bench) wantServed(t *testing.T, e *v1alpha1.Edge) {
	t.Helper()
	p := e.Spec.ForProvider
	route := &networkingv1.Ingress{}
	if err := b.Get(t.Context(), client.ObjectKey{Namespace: p.Namespace, Name: "acme-edge"}, route); err != nil {
		t.Fatal(err)
	}
	if len(route.Spec.TLS) != 1 {
		t.Fatalf("the route is not encrypted: %+v", route.Spec)
	}
	secret := &corev1.Secret{}
	if err := b.Get(t.Context(), client.ObjectKey{Namespace: p.Namespace, Name: route.Spec.TLS[0].SecretName}, secret); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: p.Services[0].Host, Roots: b.certs.Roots()}); err != nil {
		t.Errorf("a client does not accept the certificate: %v", err)
	}
}

// wantTold expects events with these reasons on a claim.
func (b *bench) wantTold(t *testing.T, claim string, reasons ...string) {
	t.Helper()
	harness.Eventually(t, "the claim's owner is told", func(context.Context) error {
		l := &corev1.EventList{}
		if err := b.List(t.Context(), l, client.InNamespace("tenant-acme")); err != nil {
			return err
		}
		var got []string
		for _, e := range l.Items {
			if e.InvolvedObject.Name == claim {
				got = append(got, e.Reason+": "+e.Message)
			}
		}
		for _, r := range reasons {
			if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, r+":") }) {
				return fmt.Errorf("events on the claim: %q, want one with the reason %s", got, r)
			}
		}
		return nil
	})
}

// wantRest expects an Edge that is as it should be to write nothing.
func (b *bench) wantRest(t *testing.T, e *v1alpha1.Edge) {
	t.Helper()
	versions := func() string {
		var out []string
		for _, obj := range []client.Object{
			&v1alpha1.Edge{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}},
			&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: e.Spec.ForProvider.Namespace, Name: "acme-edge"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Spec.ForProvider.Namespace, Name: e.Spec.ForProvider.CertificateSecret}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Spec.ForProvider.Namespace}},
		} {
			if err := b.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				t.Fatal(err)
			}
			out = append(out, obj.GetResourceVersion())
		}
		return strings.Join(out, " ")
	}
	time.Sleep(2 * time.Second) // What was just written is seen once more.
	before := versions()
	// It is woken, and finds nothing to do.
	woken := records(e)
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(woken), woken); err != nil {
		t.Fatal(err)
	}
	annotations := woken.GetAnnotations()
	annotations["example.com/look"] = "again"
	woken.SetAnnotations(annotations)
	if err := b.Update(t.Context(), woken); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	if after := versions(); after != before {
		t.Errorf("an Edge at rest is not: resource versions were %s, are %s", before, after)
	}
}

func (b *bench) testDrift(t *testing.T) {
	e := b.edge(t, "drift")
	b.wait(t, e, "Exposed", "Issued")
	t.Run("the route is deleted", func(t *testing.T) {
		route := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-drift", Name: "acme-edge"}}
		b.wantBack(t, route)
	})
	t.Run("the records are deleted", func(t *testing.T) {
		b.wantBack(t, records(e))
	})
	t.Run("the certificate is renewed", func(t *testing.T) {
		source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.EdgeNamespace, Name: "acme-drift-wildcard-tls"}}
		if err := b.Delete(t.Context(), source); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, "the new one is copied", func(context.Context) error {
			copied := &corev1.Secret{}
			err := b.Get(t.Context(), client.ObjectKey{Namespace: "acme-drift", Name: source.Name}, copied)
			if err == nil {
				err = b.Get(t.Context(), client.ObjectKeyFromObject(source), source)
			}
			if err == nil && string(copied.Data[corev1.TLSCertKey]) != string(source.Data[corev1.TLSCertKey]) {
				err = errors.New("the copy is another")
			}
			return err
		})
	})
	b.deleteEdge(t, e)
	b.waitGone(t, e)
}

// wantBack deletes an object and waits for another in its place.
func (b *bench) wantBack(t *testing.T, obj client.Object) {
	t.Helper()
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	before := obj.GetUID()
	if err := b.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, obj.GetName()+" is back", func(context.Context) error {
		if err := b.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if obj.GetUID() == before {
			return errors.New("it is still the old one")
		}
		return nil
	})
}

func (b *bench) testHostTaken(t *testing.T) {
	b.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "squat"}})
	other := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "squat", Name: "squat"}, Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: host("taken")}}}}
	kit.Stamp(other, v1alpha1.Identity{Tenant: "globex", Environment: "web", UID: "uid-globex"})
	b.create(t, other)
	e := b.edge(t, "taken")
	b.wait(t, e, "HostTaken", "Issued")
	if m := e.Status.AtProvider.Exposed.Message; !strings.Contains(m, "environment globex/web") {
		t.Errorf("by whom? %s", m)
	}
	if got := b.dns.Records(host("taken")); len(got) > 0 {
		t.Errorf("it has records all the same: %v", got)
	}
	if err := b.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	b.wait(t, e, "Exposed", "Issued")
	b.deleteEdge(t, e)
	b.waitGone(t, e)
}

func (b *bench) testNeverIssued(t *testing.T) {
	b.certs.NeverIssues("no configured challenge solvers can be used for this challenge")
	defer b.certs.NeverIssues("")
	e := b.edge(t, "never")
	b.wait(t, e, "Exposed", "Issuing")
	if m := e.Status.AtProvider.Certificate.Message; m != "the certificate is being issued" {
		t.Errorf("what need not have happened yet is told: %q", m)
	}
	b.clock.forward(time.Minute)
	harness.Eventually(t, "why is in the verdict", func(context.Context) error {
		if err := b.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		if m := e.Status.AtProvider.Certificate.Message; !strings.Contains(m, "no configured challenge solvers") {
			return fmt.Errorf("it says %q", m)
		}
		return nil
	})
	b.clock.forward(0)
	b.deleteEdge(t, e)
	b.waitGone(t, e)
	b.wantNothingOwned(t, e.Spec.ForProvider.Identity)
}

func (b *bench) testGateway(t *testing.T) {
	var err error
	if b.gates, err = edgeoperators.StartGateways(context.Background(), b.plane.Config()); err != nil {
		t.Fatal(err)
	}
	b.define(t, edgeoperators.GatewayModule)
	e := b.edge(t, "gate", func(e *v1alpha1.Edge) {
		e.Spec.ForProvider.Exposure.Ingress.ClassName = ""
		e.Spec.ForProvider.Exposure.Ingress.GatewayRef = &steading.GatewayReference{Namespace: "gateways", Name: "public"}
	})
	b.wait(t, e, "Exposed", "Issued")
	b.gates.Refuse("no listener allows this namespace")
	b.wait(t, e, "RouteRefused", "Issued")
	b.gates.Refuse("")
	b.wait(t, e, "Exposed", "Issued")
	b.deleteEdge(t, e)
	b.waitGone(t, e)
	b.wantNothingOwned(t, e.Spec.ForProvider.Identity)
}

func (b *bench) testRemainder(t *testing.T) {
	b.certs.NeverIssues("waiting for the record to propagate")
	b.certs.HoldsChallenges(true)
	e := b.edge(t, "held")
	b.wait(t, e, "Exposed", "Issuing")
	harness.Eventually(t, "there is a challenge", func(context.Context) error {
		l := &unstructured.UnstructuredList{}
		l.SetAPIVersion("acme.cert-manager.io/v1")
		l.SetKind("ChallengeList")
		if err := b.List(t.Context(), l); err != nil || len(l.Items) == 0 {
			return fmt.Errorf("there is none: %w", err)
		}
		return nil
	})
	b.deleteEdge(t, e)
	time.Sleep(3 * time.Second)
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		t.Fatalf("it did not wait: %v", err)
	}
	b.clock.forward(2 * time.Minute)
	b.waitGone(t, e)
	b.clock.forward(0)
	r := &v1alpha1.EdgeRemainder{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-held-uid-held"}}
	harness.Eventually(t, "the remainder says what is left", func(context.Context) error {
		if err := b.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		if left := strings.Join(r.Status.Left, "; "); !strings.Contains(left, "Challenge steading-edge/") || !strings.Contains(left, "acme.cert-manager.io/finalizer") {
			return fmt.Errorf("it says %q", left)
		}
		return nil
	})
	b.wantTold(t, "held", "EdgeRemainder")
	b.certs.NeverIssues("")
	b.certs.HoldsChallenges(false)
	b.waitGone(t, r)
	b.wantNothingOwned(t, e.Spec.ForProvider.Identity)
}

// testOperatorsGo deletes one Edge whose operators do not run, and one whose operators' kinds are gone.
func (b *bench) testOperatorsGo(t *testing.T) {
	idle, gone := b.edge(t, "idle"), b.edge(t, "gone")
	b.wait(t, idle, "Exposed", "Issued")
	b.wait(t, gone, "Exposed", "Issued")
	b.dns.Gone(true)
	b.certs.Gone(true)
	b.deleteEdge(t, idle)
	// Its challenge is met and has to be cleaned up after, which nobody does.
	harness.Eventually(t, "it waits for the challenge", func(context.Context) error {
		return b.Get(t.Context(), client.ObjectKeyFromObject(idle), idle)
	})
	b.clock.forward(2 * time.Minute)
	b.waitGone(t, idle)
	b.clock.forward(0)

	for _, name := range []string{"dnsendpoints.externaldns.k8s.io", "certificates.cert-manager.io", "certificaterequests.cert-manager.io", "orders.acme.cert-manager.io"} {
		if err := b.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	b.wait(t, gone, "OperatorMissing", "OperatorMissing")
	b.certs.Gone(false) // So that the challenges go, and their definition can.
	if err := b.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "challenges.acme.cert-manager.io"}}); err != nil {
		t.Fatal(err)
	}
	b.deleteEdge(t, gone)
	b.waitGone(t, gone)
	b.wantNothingOwned(t, gone.Spec.ForProvider.Identity)
	b.waitGone(t, &v1alpha1.EdgeRemainder{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-idle-uid-idle"}})
	b.wantNothingOwned(t, idle.Spec.ForProvider.Identity)
}
