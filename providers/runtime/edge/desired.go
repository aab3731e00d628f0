package edge

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// Kinds that an Edge makes and looks at, other than Kubernetes' own. They are not imported: nothing of their projects runs
// here.
var (
	dnsEndpointKind = schema.GroupVersionKind{Group: "externaldns.k8s.io", Version: "v1alpha1", Kind: "DNSEndpoint"}
	certificateKind = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}
	challengeKind   = schema.GroupVersionKind{Group: "acme.cert-manager.io", Version: "v1", Kind: "Challenge"}
	ingressKind     = schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}
	httpRouteKind   = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
)

// managedInside is the value of the label managed-by on what is made in the environment's namespace. The label's own value
// is kept for what the environment's deployer may not write.
const managedInside = names.ManagedBy + "-edge"

// ttl of the records, in seconds: how long an environment that has moved is looked for in the old place.
const ttl = 60

// name of the Edge's objects on the control plane.
func name(p v1alpha1.EdgeParameters) string {
	return names.Environment(p.Identity.Tenant, p.Identity.Environment)
}

func newObject(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// stampInside puts the identity on what the deployer writes.
func stampInside(obj client.Object, id v1alpha1.Identity) {
	kit.Stamp(obj, id)
	l := obj.GetLabels()
	l[names.LabelManagedBy] = managedInside
	obj.SetLabels(l)
}

// dnsEndpoint has the records of the services: A and AAAA, to the addresses of the context's ingress.
func dnsEndpoint(p v1alpha1.EdgeParameters, services []v1alpha1.ExposedService) *unstructured.Unstructured {
	var v4, v6 []string
	for _, a := range p.Exposure.Ingress.Addresses {
		switch ip, err := netip.ParseAddr(a); {
		case err != nil:
			// The schema takes addresses only.
		case ip.Unmap().Is4():
			v4 = append(v4, ip.Unmap().String())
		default:
			v6 = append(v6, ip.String())
		}
	}
	endpoints := []any{}
	for _, s := range services {
		for _, record := range []struct {
			kind    string
			targets []string
		}{{"A", v4}, {"AAAA", v6}} {
			if len(record.targets) > 0 {
				endpoints = append(endpoints, map[string]any{
					"dnsName": s.Host, "recordType": record.kind, "recordTTL": int64(ttl), "targets": sorted(record.targets),
				})
			}
		}
	}
	u := newObject(dnsEndpointKind, names.EdgeNamespace, name(p))
	u.Object["spec"] = map[string]any{"endpoints": endpoints}
	kit.Stamp(u, p.Identity)
	return u
}

// certificate is one for all services there are and will be: one that named each would be issued anew whenever a service
// is added, and issuers count. It has no common name, which cannot be longer than 64 characters.
func certificate(p v1alpha1.EdgeParameters, issuer v1alpha1.IssuerReference) *unstructured.Unstructured {
	kind := issuer.Kind
	if kind == "" {
		kind = "ClusterIssuer"
	}
	u := newObject(certificateKind, names.EdgeNamespace, name(p))
	kit.Stamp(u, p.Identity)
	u.Object["spec"] = map[string]any{
		"secretName": p.CertificateSecret,
		"dnsNames":   []any{"*." + domainOf(p)},
		"issuerRef":  map[string]any{"group": certificateKind.Group, "kind": kind, "name": issuer.Name},
		"privateKey": map[string]any{"algorithm": "ECDSA", "size": int64(256), "rotationPolicy": "Always"},
		"secretTemplate": map[string]any{
			"labels": untyped(u.GetLabels()), "annotations": untyped(u.GetAnnotations()),
		},
	}
	return u
}

// secretCopy is what the routes need of the certificate's Secret.
func secretCopy(p v1alpha1.EdgeParameters, from *corev1.Secret) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.CertificateSecret},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{},
	}
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		s.Data[key] = from.Data[key]
	}
	stampInside(s, p.Identity)
	return s
}

// routes that lead to the services, encrypted where there is a certificate to do it with. A Gateway's listeners have
// certificates of their own.
func routes(p v1alpha1.EdgeParameters, services []v1alpha1.ExposedService, encrypted bool) ([]*unstructured.Unstructured, error) {
	if len(services) == 0 {
		return nil, nil
	}
	if p.Exposure.Ingress.GatewayRef != nil {
		out := make([]*unstructured.Unstructured, 0, len(services))
		for _, s := range services {
			out = append(out, httpRoute(p, s))
		}
		return out, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ingress(p, services, encrypted))
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	u.SetGroupVersionKind(ingressKind)
	if spec, ok := u.Object["spec"].(map[string]any); ok && !encrypted {
		spec["tls"] = nil
	}
	return []*unstructured.Unstructured{u}, nil
}

func ingress(p v1alpha1.EdgeParameters, services []v1alpha1.ExposedService, encrypted bool) *networkingv1.Ingress {
	i := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: names.Route(p.Identity.Tenant)},
		Spec:       networkingv1.IngressSpec{IngressClassName: ptr.To(p.Exposure.Ingress.ClassName)},
	}
	stampInside(i, p.Identity)
	var hosts []string
	for _, s := range services {
		hosts = append(hosts, s.Host)
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{
			Host: s.Host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
				Path:     "/",
				PathType: ptr.To(networkingv1.PathTypePrefix),
				Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
					Name: s.Service, Port: networkingv1.ServiceBackendPort{Number: servicePort},
				}},
			}}}},
		})
	}
	if encrypted {
		i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: hosts, SecretName: p.CertificateSecret}}
	}
	return i
}

// servicePort of every exposed service.
const servicePort = 80

func httpRoute(p v1alpha1.EdgeParameters, s v1alpha1.ExposedService) *unstructured.Unstructured {
	gateway := p.Exposure.Ingress.GatewayRef
	u := newObject(httpRouteKind, p.Namespace, names.RouteOf(p.Identity.Tenant, s.Name))
	u.Object["spec"] = map[string]any{
		"parentRefs": []any{map[string]any{"namespace": gateway.Namespace, "name": gateway.Name}},
		"hostnames":  []any{s.Host},
		"rules": []any{map[string]any{
			"matches":     []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}},
			"backendRefs": []any{map[string]any{"name": s.Service, "port": int64(servicePort)}},
		}},
	}
	stampInside(u, p.Identity)
	return u
}

func sorted(in []string) []any {
	in = slices.Compact(slices.Sorted(slices.Values(in)))
	out := make([]any, 0, len(in))
	for _, s := range in {
		out = append(out, s)
	}
	return out
}

func untyped(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}
