package edge

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
	"github.com/steading-dev/steading/providers/internal/kit"
)

func kindUnknown() apimeta.NoKindMatchError {
	return apimeta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Unknown"}}
}

func TestExposes(t *testing.T) {
	w := newWorld(t, environment()...)
	mg := edge()
	w.converge(mg)
	wantVerdicts(t, mg, "Exposed", "Issuing")
	if kit.IsReady(mg) {
		t.Error("an Edge without the certificate that is asked for is ready")
	}
	if _, tls, _ := unstructured.NestedSlice(w.get(ingressKind, "acme-dev", "acme-edge").Object, "spec", "tls"); tls {
		t.Error("the Ingress names a certificate that there is not")
	}

	w.issue(mg)
	w.converge(mg)
	wantVerdicts(t, mg, "Exposed", "Issued")
	if !kit.IsReady(mg) || mg.GetCondition(xpv2.TypeReady).ObservedGeneration != 2 {
		t.Errorf("not ready: %+v", mg.GetCondition(xpv2.TypeReady))
	}
	want := []string{"Normal Exposed services are exposed", "Normal Issued the certificate is issued"}
	if diff := cmp.Diff(want, w.told()); diff != "" {
		t.Errorf("events on the claim: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"mcp.acme-dev.services.example.com"}, mg.Status.AtProvider.Hosts); diff != "" {
		t.Errorf("hosts: -want +got\n%s", diff)
	}

	stamp := map[string]any{"steading.dev/tenant": "acme", "steading.dev/environment": "dev", "steading.dev/composite-uid": "uid-1"}
	labels := map[string]any{"app.kubernetes.io/managed-by": "steading"}
	for k, v := range stamp {
		labels[k] = v
	}
	specs := map[string]struct {
		reason string
		kind   schema.GroupVersionKind
		in     string
		name   string
		want   map[string]any
	}{
		"Records": {
			reason: "an A and an AAAA record for the host, to the addresses of the context's ingress (W26)",
			kind:   dnsEndpointKind, in: names.EdgeNamespace, name: "acme-dev",
			want: map[string]any{"endpoints": []any{
				map[string]any{"dnsName": "mcp.acme-dev.services.example.com", "recordType": "A", "recordTTL": int64(60), "targets": []any{"203.0.113.7"}},
				map[string]any{"dnsName": "mcp.acme-dev.services.example.com", "recordType": "AAAA", "recordTTL": int64(60), "targets": []any{"2001:db8::7"}},
			}},
		},
		"Certificate": {
			reason: "one for all services, without a common name (W27)",
			kind:   certificateKind, in: names.EdgeNamespace, name: "acme-dev",
			want: map[string]any{
				"secretName": "acme-dev-wildcard-tls", "dnsNames": []any{"*.acme-dev.services.example.com"},
				"issuerRef":      map[string]any{"group": "cert-manager.io", "kind": "ClusterIssuer", "name": "letsencrypt"},
				"privateKey":     map[string]any{"algorithm": "ECDSA", "size": int64(256), "rotationPolicy": "Always"},
				"secretTemplate": map[string]any{"labels": labels, "annotations": stamp},
			},
		},
		"Ingress": {
			reason: "one rule a host, encrypted with the copy of the certificate",
			kind:   ingressKind, in: "acme-dev", name: "acme-edge",
			want: map[string]any{
				"ingressClassName": "traefik",
				"rules": []any{map[string]any{
					"host": "mcp.acme-dev.services.example.com",
					"http": map[string]any{"paths": []any{map[string]any{
						"path": "/", "pathType": "Prefix",
						"backend": map[string]any{"service": map[string]any{"name": "acme-mcp", "port": map[string]any{"number": int64(80)}}},
					}}},
				}},
				"tls": []any{map[string]any{"hosts": []any{"mcp.acme-dev.services.example.com"}, "secretName": "acme-dev-wildcard-tls"}},
			},
		},
	}
	for name, tc := range specs {
		t.Run(name, func(t *testing.T) {
			got := w.get(tc.kind, tc.in, tc.name)
			if diff := cmp.Diff(tc.want, got.Object["spec"]); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
			if found, ok := kit.IdentityOf(got); !ok || found != id {
				t.Errorf("it carries the identity %+v", found)
			}
		})
	}

	copied := &corev1.Secret{}
	if err := w.Get(context.Background(), client.ObjectKey{Namespace: "acme-dev", Name: "acme-dev-wildcard-tls"}, copied); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key")}, copied.Data); diff != "" || copied.Type != corev1.SecretTypeTLS {
		t.Errorf("the copy has what a route needs and nothing else: type %s, -want +got\n%s", copied.Type, diff)
	}
	ns := &corev1.Namespace{}
	if err := w.Get(context.Background(), client.ObjectKey{Name: "acme-dev"}, ns); err != nil {
		t.Fatal(err)
	}
	if got := ns.Annotations[names.AnnotationHostSuffix]; got != ".acme-dev.services.example.com" {
		t.Errorf("the namespace may route hosts that end in %q", got)
	}
}

// TestRests looks again at an Edge that is as it should be: nothing is written, and the status stays as it is.
func TestRests(t *testing.T) {
	w := newWorld(t, environment()...)
	mg := edge()
	w.converge(mg)
	w.issue(mg)
	w.converge(mg)
	before, written := mg.Status.DeepCopy(), len(w.writes)
	w.told()
	for range 3 {
		obs, err := w.e.Observe(context.Background(), mg)
		if err != nil || !obs.ResourceUpToDate {
			t.Fatalf("got %+v, %v", obs, err)
		}
	}
	if diff := cmp.Diff(before, mg.Status.DeepCopy()); diff != "" {
		t.Errorf("the status changes by itself: -want +got\n%s", diff)
	}
	if len(w.writes) != written || len(w.told()) != 0 {
		t.Errorf("something was written: %v", w.writes[written:])
	}
}

func wantVerdicts(t *testing.T, mg *v1alpha1.Edge, exposed, certificate string) {
	t.Helper()
	o := mg.Status.AtProvider
	if o.Exposed.Reason != exposed || o.Certificate.Reason != certificate {
		t.Errorf("exposed: want %s, got %+v\ncertificate: want %s, got %+v", exposed, o.Exposed, certificate, o.Certificate)
	}
}

func TestVerdicts(t *testing.T) {
	foreign := func(kind schema.GroupVersionKind, namespace, name string) func(*world) {
		return func(w *world) {
			u := newObject(kind, namespace, name)
			if err := w.Create(context.Background(), u); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	status := func(s map[string]any) func(*world) {
		return func(w *world) {
			w.converge(edge())
			w.change(w.get(certificateKind, names.EdgeNamespace, "acme-dev"), func(o map[string]any) { o["status"] = s })
		}
	}
	long := strings.Repeat("x", 63) + "." + strings.Repeat("y", 63) + "." + strings.Repeat("z", 63) + "." + strings.Repeat("w", 60) + ".com"
	cases := map[string]struct {
		reason      string
		edge        *v1alpha1.Edge
		world       func(*world)
		exposed     string
		certificate string
		// says is in one of the messages.
		says string
	}{
		"NoIssuer": {
			reason: "the operator did not name an issuer: services are reached by http, and the operator learns what to set",
			edge:   edge(),
			world: func(w *world) {
				c := config()
				if err := w.Get(context.Background(), client.ObjectKeyFromObject(c), c); err != nil {
					w.t.Fatal(err)
				}
				c.Spec.Certificates = nil
				if err := w.Update(context.Background(), c); err != nil {
					w.t.Fatal(err)
				}
			},
			exposed: "Exposed", certificate: "NoCertificate", says: "spec.certificates.issuerRef of ClusterProviderConfig default",
		},
		"NoDNSOperator": {
			reason: "external-dns is missing: a verdict, no error",
			edge:   edge(), world: func(w *world) { w.absent[dnsEndpointKind] = true },
			exposed: "OperatorMissing", certificate: "Issuing", says: "external-dns is not installed",
		},
		"NoCertificateOperator": {
			reason: "cert-manager is missing: a verdict, no error",
			edge:   edge(), world: func(w *world) { w.absent[certificateKind] = true },
			exposed: "Exposed", certificate: "OperatorMissing", says: "cert-manager is not installed",
		},
		"NoOperators": {
			reason: "neither is there; the route stands all the same",
			edge:   edge(), world: func(w *world) { w.absent[dnsEndpointKind], w.absent[certificateKind] = true, true },
			exposed: "OperatorMissing", certificate: "OperatorMissing",
		},
		"RecordsNotTakenUp": {
			reason: "external-dns is installed and does not run",
			edge:   edge(),
			world: func(w *world) {
				w.converge(edge())
				w.change(w.get(dnsEndpointKind, names.EdgeNamespace, "acme-dev"), func(o map[string]any) {
					_ = unstructured.SetNestedField(o, int64(1), "metadata", "generation")
				})
			},
			exposed: "Exposing", certificate: "Issuing", says: "external-dns has not taken up DNSEndpoint steading-edge/acme-dev yet",
		},
		"NotIssued": {
			reason: "what cert-manager says of a certificate that is not issued reaches the claim (W29)",
			edge:   edge(),
			world: status(map[string]any{"conditions": []any{
				map[string]any{"type": "Ready", "status": "False", "reason": "DoesNotExist", "message": "Issuing certificate as Secret does not exist"},
				map[string]any{"type": "Issuing", "status": "True"},
			}}),
			exposed: "Exposed", certificate: "Issuing", says: "Issuing certificate as Secret does not exist",
		},
		"IssueFailed": {
			reason: "cert-manager failed and will try again later",
			edge:   edge(),
			world: status(map[string]any{"failedIssuanceAttempts": int64(2), "conditions": []any{
				map[string]any{"type": "Ready", "status": "False", "message": "Issuing certificate as Secret does not exist"},
				map[string]any{"type": "Issuing", "status": "False", "reason": "Failed", "message": "order is invalid: 429 too many certificates already issued"},
			}}),
			exposed: "Exposed", certificate: "IssueFailed", says: "429 too many certificates",
		},
		"ChallengePending": {
			reason: "why the issuer does not get its proof",
			edge:   edge(),
			world: func(w *world) {
				status(map[string]any{"conditions": []any{map[string]any{"type": "Issuing", "status": "True"}}})(w)
				u := newObject(challengeKind, names.EdgeNamespace, "acme-dev-1-2-3")
				u.Object["spec"] = map[string]any{"dnsName": "acme-dev.services.example.com"}
				u.Object["status"] = map[string]any{"reason": "no configured challenge solvers can be used for this challenge"}
				if err := w.Create(context.Background(), u); err != nil {
					w.t.Fatal(err)
				}
			},
			exposed: "Exposed", certificate: "Issuing", says: "no configured challenge solvers",
		},
		"Unreachable": {
			reason: "the environment's cluster does not answer: names are asked for all the same",
			edge:   edge(), world: func(w *world) { w.unreachable = true },
			exposed: "TargetUnreachable", certificate: "Issuing", says: "cannot reach the cluster of context platform",
		},
		"Refused": {
			reason: "nobody asked the environment's cluster, whose address is refused",
			edge:   edge(), world: func(w *world) {
				w.unreachable, w.because = true, address.Policy{}.Check(netip.MustParseAddr("127.0.0.1"))
			},
			exposed: "AddressRefused", certificate: "Issuing", says: "127.0.0.1 is a loopback address",
		},
		"NoNamespace": {
			reason:  "the Boundary has not made the namespace yet",
			edge:    edge(func(e *v1alpha1.Edge) { e.Spec.ForProvider.Namespace = "acme-dev2" }),
			exposed: "Exposing", certificate: "Issuing", says: "namespace acme-dev2 does not stand yet",
		},
		"ForeignNamespace": {
			reason: "a namespace that is not the environment's is not touched",
			edge:   edge(func(e *v1alpha1.Edge) { e.Spec.ForProvider.Namespace = "kube-system" }),
			world: func(w *world) {
				if err := w.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}); err != nil {
					w.t.Fatal(err)
				}
			},
			exposed: "ForeignNamespace", certificate: "Issuing", says: "was not made by Steading",
		},
		"NoDeployer": {
			reason: "the account is not there yet",
			edge:   edge(),
			world: func(w *world) {
				if err := w.Delete(context.Background(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-dev", Name: names.Deployer}}); err != nil {
					w.t.Fatal(err)
				}
			},
			exposed: "Exposing", certificate: "Issuing", says: "has no account steading-deployer yet",
		},
		"ForeignRecords":     {reason: "someone else's DNSEndpoint", edge: edge(), world: foreign(dnsEndpointKind, names.EdgeNamespace, "acme-dev"), exposed: "NotOurs", certificate: "Issuing"},
		"ForeignCertificate": {reason: "someone else's Certificate", edge: edge(), world: foreign(certificateKind, names.EdgeNamespace, "acme-dev"), exposed: "Exposed", certificate: "NotOurs"},
		"ForeignSource":      {reason: "someone else's Secret, which cert-manager would overwrite", edge: edge(), world: foreign(secretKind, names.EdgeNamespace, "acme-dev-wildcard-tls"), exposed: "Exposed", certificate: "NotOurs"},
		"ForeignIngress":     {reason: "an Ingress that a chart made", edge: edge(), world: foreign(ingressKind, "acme-dev", "acme-edge"), exposed: "NotOurs", certificate: "Issuing"},
		"HostTooLong": {
			reason: "the whole name is over 253 characters (W27)",
			edge:   edge(zone(long)), exposed: "NameRefused", certificate: "NameRefused", says: "DNS allows 253",
		},
		"LabelTooLong": {
			reason: "a service's name is over 63 characters",
			edge:   edge(services(strings.Repeat("s", 64))), exposed: "NameRefused", certificate: "Issuing", says: "has 64 characters and DNS allows 63",
		},
		"ServiceTooLong": {
			reason: "with the tenant's name before it a service's name is over 63 characters",
			edge: edge(func(e *v1alpha1.Edge) {
				e.Spec.ForProvider.Services[0].Service = "acme-" + strings.Repeat("s", 60)
			}),
			exposed: "NameRefused", certificate: "Issuing", says: "has 65 characters and Kubernetes allows 63",
		},
		"HostElsewhere": {
			reason:  "a host outside of the environment's domain",
			edge:    edge(func(e *v1alpha1.Edge) { e.Spec.ForProvider.Services[0].Host = "mcp.globex-web.services.example.com" }),
			exposed: "NameRefused", certificate: "Issuing", says: "does not end in .acme-dev.services.example.com",
		},
		"GatewayMissing": {
			reason: "the context names a Gateway on a cluster that does not know Gateways",
			edge:   edge(gateway), world: func(w *world) { w.absent[httpRouteKind] = true },
			exposed: "OperatorMissing", certificate: "Issuing", says: "install the Gateway API",
		},
		"GatewaySilent": {
			reason: "nobody answers for the Gateway",
			edge:   edge(gateway), exposed: "Exposing", certificate: "Issuing", says: "Gateway gateways/public has not accepted HTTPRoute acme-dev/acme-edge-mcp yet",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, environment()...)
			if tc.world != nil {
				tc.world(w)
			}
			w.writes = nil
			w.converge(tc.edge)
			wantVerdicts(t, tc.edge, tc.exposed, tc.certificate)
			o := tc.edge.Status.AtProvider
			if !strings.Contains(o.Exposed.Message+" "+o.Certificate.Message, tc.says) {
				t.Errorf("%s: the messages do not say %q:\n%s\n%s", tc.reason, tc.says, o.Exposed.Message, o.Certificate.Message)
			}
			for _, w := range w.writes {
				if strings.Contains(w, "kube-system") {
					t.Errorf("%s: %s", tc.reason, w)
				}
			}
			if want := o.Exposed.OK && (o.Certificate.OK || tc.certificate == "NoCertificate"); kit.IsReady(tc.edge) != want {
				t.Errorf("%s: ready is %v, want %v", tc.reason, kit.IsReady(tc.edge), want)
			}
		})
	}
}

// TestAStartSaysNothingNew: a provider that has just started has not looked at the Contexts, and takes back nothing of what the one
// before it has said.
func TestAStartSaysNothingNew(t *testing.T) {
	w, e := newWorld(t, environment()...), edge()
	w.converge(e)
	before := e.Status.DeepCopy()
	w.notYet, w.writes = true, nil
	w.converge(e)
	if diff := cmp.Diff(*before, e.Status); diff != "" || len(w.writes) > 0 {
		t.Errorf("written %v, status: %s", w.writes, diff)
	}
}
