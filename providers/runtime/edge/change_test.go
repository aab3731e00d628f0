package edge

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

func TestGateway(t *testing.T) {
	w := newWorld(t, environment()...)
	mg := edge(gateway, services("mcp", "ui"))
	w.converge(mg)
	got := w.get(httpRouteKind, "acme-dev", "acme-edge-ui")
	want := map[string]any{
		"parentRefs": []any{map[string]any{"namespace": "gateways", "name": "public"}},
		"hostnames":  []any{"ui.acme-dev.services.example.com"},
		"rules": []any{map[string]any{
			"matches":     []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}},
			"backendRefs": []any{map[string]any{"name": "acme-ui", "port": int64(80)}},
		}},
	}
	if diff := cmp.Diff(want, got.Object["spec"]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	answer := func(name, accepted, message string) {
		w.change(w.get(httpRouteKind, "acme-dev", name), func(o map[string]any) {
			o["status"] = map[string]any{"parents": []any{map[string]any{"conditions": []any{
				map[string]any{"type": "Accepted", "status": accepted, "reason": "NotAllowedByListeners", "message": message},
			}}}}
		})
	}
	answer("acme-edge-mcp", "True", "")
	answer("acme-edge-ui", "False", "no listener allows this namespace")
	w.converge(mg)
	wantVerdicts(t, mg, "RouteRefused", "Issuing")
	if m := mg.Status.AtProvider.Exposed.Message; !strings.Contains(m, "no listener allows this namespace") {
		t.Errorf("got %q", m)
	}
	if diff := cmp.Diff([]string{"mcp.acme-dev.services.example.com"}, mg.Status.AtProvider.Hosts); diff != "" {
		t.Errorf("hosts: -want +got\n%s", diff)
	}
	answer("acme-edge-ui", "True", "")
	w.converge(mg)
	wantVerdicts(t, mg, "Exposed", "Issuing")
}

// TestFollows changes what is desired, or what is there, of an Edge that stands.
func TestFollows(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*world, *v1alpha1.Edge)
		want   func(*world) bool
	}{
		"ServiceAdded": {
			reason: "its record and rule are added, and the certificate stays as it was", change: func(_ *world, e *v1alpha1.Edge) { services("mcp", "ui")(e) },
			want: func(w *world) bool {
				rules, _, _ := unstructured.NestedSlice(w.get(ingressKind, "acme-dev", "acme-edge").Object, "spec", "rules")
				records, _, _ := unstructured.NestedSlice(w.get(dnsEndpointKind, names.EdgeNamespace, "acme-dev").Object, "spec", "endpoints")
				return len(rules) == 2 && len(records) == 4 && !contained(w.writes, "update Certificate steading-edge/acme-dev")
			},
		},
		"AddressChanged": {
			reason: "no stale record stays (external-dns#1932)", change: func(_ *world, e *v1alpha1.Edge) {
				e.Spec.ForProvider.Exposure.Ingress.Addresses = []string{"203.0.113.9"}
			},
			want: func(w *world) bool {
				records, _, _ := unstructured.NestedSlice(w.get(dnsEndpointKind, names.EdgeNamespace, "acme-dev").Object, "spec", "endpoints")
				targets, _, _ := unstructured.NestedStringSlice(records[0].(map[string]any), "targets") //nolint:forcetypeassert // A test.
				return len(records) == 1 && cmp.Equal(targets, []string{"203.0.113.9"})
			},
		},
		"ZoneChanged": {
			reason: "namespace, records, certificate and route all follow", change: func(_ *world, e *v1alpha1.Edge) { zone("example.org")(e) },
			want: func(w *world) bool {
				ns := &corev1.Namespace{}
				_ = w.Get(context.Background(), client.ObjectKey{Name: "acme-dev"}, ns)
				dns, _, _ := unstructured.NestedStringSlice(w.get(certificateKind, names.EdgeNamespace, "acme-dev").Object, "spec", "dnsNames")
				i := w.get(ingressKind, "acme-dev", "acme-edge")
				return ns.Annotations[names.AnnotationHostSuffix] == ".acme-dev.example.org" && dns[0] == "*.acme-dev.example.org" && routedBy(i)[0] == "mcp.acme-dev.example.org"
			},
		},
		"GatewayInstead": {
			reason: "the Ingress goes, the HTTPRoute comes", change: func(_ *world, e *v1alpha1.Edge) { gateway(e) },
			want: func(w *world) bool {
				return !w.exists(ingressKind, "acme-dev", "acme-edge") && w.exists(httpRouteKind, "acme-dev", "acme-edge-mcp")
			},
		},
		"IngressDrifted": {
			reason: "a chart changed the route",
			change: func(w *world, _ *v1alpha1.Edge) {
				w.change(w.get(ingressKind, "acme-dev", "acme-edge"), func(o map[string]any) {
					_ = unstructured.SetNestedField(o, "other", "spec", "ingressClassName")
				})
			},
			want: func(w *world) bool {
				class, _, _ := unstructured.NestedString(w.get(ingressKind, "acme-dev", "acme-edge").Object, "spec", "ingressClassName")
				return class == "traefik"
			},
		},
		"RecordsGone": {
			reason: "somebody deleted the records",
			change: func(w *world, _ *v1alpha1.Edge) {
				_ = w.Delete(context.Background(), newObject(dnsEndpointKind, names.EdgeNamespace, "acme-dev"))
			},
			want: func(w *world) bool { return w.exists(dnsEndpointKind, names.EdgeNamespace, "acme-dev") },
		},
		"Renewed": {
			reason: "a new certificate is copied",
			change: func(w *world, e *v1alpha1.Edge) {
				s := issued(e)
				_ = w.Get(context.Background(), client.ObjectKeyFromObject(s), s)
				s.Data["tls.crt"] = []byte("renewed")
				_ = w.Update(context.Background(), s)
			},
			want: func(w *world) bool { return string(copyOf(w).Data["tls.crt"]) == "renewed" },
		},
		"SourceGone": {
			reason: "the copy is kept while there is no other",
			change: func(w *world, e *v1alpha1.Edge) { _ = w.Delete(context.Background(), issued(e)) },
			want: func(w *world) bool {
				_, tls, _ := unstructured.NestedSlice(w.get(ingressKind, "acme-dev", "acme-edge").Object, "spec", "tls")
				return tls && string(copyOf(w).Data["tls.crt"]) == "certificate"
			},
		},
		"CopyReplaced": {
			reason: "a Secret of the wrong type, which is for life, is made anew",
			change: func(w *world, _ *v1alpha1.Edge) {
				s := copyOf(w)
				_ = w.Delete(context.Background(), s)
				s.ResourceVersion, s.Type = "", corev1.SecretTypeOpaque
				_ = w.Create(context.Background(), s)
			},
			want: func(w *world) bool { return copyOf(w).Type == corev1.SecretTypeTLS },
		},
		"IssuerLost": {
			reason: "the certificate stays when the operator's issuer is taken out of the config",
			change: func(w *world, _ *v1alpha1.Edge) {
				c := config()
				_ = w.Get(context.Background(), client.ObjectKeyFromObject(c), c)
				c.Spec.Certificates = nil
				_ = w.Update(context.Background(), c)
			},
			want: func(w *world) bool {
				issuer, _, _ := unstructured.NestedString(w.get(certificateKind, names.EdgeNamespace, "acme-dev").Object, "spec", "issuerRef", "name")
				return issuer == "letsencrypt"
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, environment()...)
			mg := edge()
			w.converge(mg)
			w.issue(mg)
			w.converge(mg)
			w.writes = nil
			tc.change(w, mg)
			w.converge(mg)
			if !tc.want(w) {
				t.Errorf("%s: written: %v", tc.reason, w.writes)
			}
		})
	}
}

func contained(in []string, s string) bool {
	for _, x := range in {
		if x == s {
			return true
		}
	}
	return false
}

func copyOf(w *world) *corev1.Secret {
	s := &corev1.Secret{}
	if err := w.Get(context.Background(), client.ObjectKey{Namespace: "acme-dev", Name: "acme-dev-wildcard-tls"}, s); err != nil {
		w.t.Fatal(err)
	}
	return s
}
