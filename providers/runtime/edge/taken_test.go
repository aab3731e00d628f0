package edge

import (
	"context"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

const host = "mcp.acme-dev.services.example.com"

// rival is another environment's Edge that wants the same host.
func rival(age time.Duration, uid types.UID, hosts ...string) *v1alpha1.Edge {
	return edge(func(e *v1alpha1.Edge) {
		e.Name, e.UID, e.CreationTimestamp = "globex-web", uid, metav1.NewTime(now.Add(-age))
		e.Spec.ForProvider.Identity = v1alpha1.Identity{Tenant: "globex", Environment: "web", UID: "uid-2"}
		e.Spec.ForProvider.Services = []v1alpha1.ExposedService{{Name: "mcp", Host: host, Service: "globex-mcp"}}
		e.Status.AtProvider.Hosts = hosts
	})
}

func ingressOf(namespace, host string, by *v1alpha1.Identity) *networkingv1.Ingress {
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "thing"}, Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: host}}}}
	if by != nil {
		kit.Stamp(i, *by)
	}
	return i
}

// TestHostTaken has two environments want one host (projectcapsule/capsule#215, #218, #225, #358).
func TestHostTaken(t *testing.T) {
	other := &v1alpha1.Identity{Tenant: "globex", Environment: "web", UID: "uid-2"}
	routed := func(hosts ...string) func(*v1alpha1.Edge) {
		return func(e *v1alpha1.Edge) { e.Status.AtProvider.Hosts = hosts }
	}
	cases := map[string]struct {
		reason string
		edge   *v1alpha1.Edge
		others []client.Object
		// by whom it is taken; empty: it is not.
		by string
	}{
		"Older":             {reason: "the older Edge has it", others: []client.Object{rival(time.Hour, "edge-2")}, by: "environment globex/web"},
		"Younger":           {reason: "the younger one gives way", others: []client.Object{rival(time.Second, "edge-2")}},
		"SameAgeLower":      {reason: "of two made in the same second one gives way, whichever looks", others: []client.Object{rival(time.Minute, "edge-0")}, by: "environment globex/web"},
		"SameAgeHigher":     {reason: "and it is the other one", others: []client.Object{rival(time.Minute, "edge-2")}},
		"YoungerRoutes":     {reason: "who routes a host already keeps it", others: []client.Object{rival(time.Second, "edge-2", host)}, by: "environment globex/web"},
		"BothRoute":         {reason: "when both do, the older keeps it", edge: edge(routed(host)), others: []client.Object{rival(time.Hour, "edge-2", host)}, by: "environment globex/web"},
		"WeRoute":           {reason: "an older Edge that comes to want our host does not get it", edge: edge(routed(host)), others: []client.Object{rival(time.Hour, "edge-2")}},
		"ForeignIngress":    {reason: "an Ingress that nobody here made", others: []client.Object{ingressOf("shop", host, nil)}, by: "Ingress shop/thing, which was not made by Steading"},
		"OthersIngress":     {reason: "another environment's Ingress, such as of a component", others: []client.Object{ingressOf("globex-web", host, other)}, by: "environment globex/web"},
		"OwnIngress":        {reason: "one in the environment's own namespace is its own affair", others: []client.Object{ingressOf("acme-dev", host, nil)}},
		"OthersWildcard":    {reason: "another environment's asterisk (multi-tenancy#1524)", others: []client.Object{ingressOf("globex-web", "*.acme-dev.services.example.com", other)}, by: "environment globex/web"},
		"OperatorsWildcard": {reason: "the operator's own catch-all gives way to a host that is named", others: []client.Object{ingressOf("shop", "*.acme-dev.services.example.com", nil)}},
		"Case":              {reason: "DNS knows no case", others: []client.Object{ingressOf("shop", "MCP.acme-dev.Services.example.com", nil)}, by: "Ingress shop/thing"},
		"OtherHost":         {reason: "another host", others: []client.Object{ingressOf("shop", "shop.example.com", nil)}},
		"NoHost":            {reason: "a route for everything is the operator's default", others: []client.Object{ingressOf("shop", "", nil)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := tc.edge
			if mg == nil {
				mg = edge()
			}
			w := newWorld(t, append(environment(), tc.others...)...)
			w.converge(mg)
			got := mg.Status.AtProvider.Exposed
			if tc.by == "" {
				if !got.OK {
					t.Errorf("%s: got %+v", tc.reason, got)
				}
				return
			}
			if got.Reason != "HostTaken" || !strings.Contains(got.Message, tc.by) {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
			if w.exists(ingressKind, "acme-dev", "acme-edge") || w.exists(dnsEndpointKind, names.EdgeNamespace, "acme-dev") {
				t.Errorf("%s: it is routed all the same", tc.reason)
			}
			if len(mg.Status.AtProvider.Hosts) != 0 {
				t.Errorf("%s: hosts %v", tc.reason, mg.Status.AtProvider.Hosts)
			}
		})
	}
}

// TestHostComesFree takes one of two hosts away from an Edge that routes both, and gives it back.
func TestHostComesFree(t *testing.T) {
	w := newWorld(t, environment()...)
	mg := edge(services("mcp", "ui"))
	w.converge(mg)
	taker := rival(time.Hour, "edge-2", host)
	if err := w.Create(context.Background(), taker); err != nil {
		t.Fatal(err)
	}
	w.converge(mg)
	if got := mg.Status.AtProvider; got.Exposed.Reason != "HostTaken" || len(got.Hosts) != 1 || got.Hosts[0] != "ui.acme-dev.services.example.com" {
		t.Errorf("the host that is its own stays routed: got %+v", got)
	}
	if err := w.Delete(context.Background(), taker); err != nil {
		t.Fatal(err)
	}
	w.converge(mg)
	if got := mg.Status.AtProvider; !got.Exposed.OK || len(got.Hosts) != 2 {
		t.Errorf("it comes free: got %+v", got)
	}
	told := strings.Join(w.told(), "\n")
	if !strings.Contains(told, "Warning HostTaken host mcp.acme-dev.services.example.com of service mcp is routed by environment globex/web") {
		t.Errorf("events on the claim:\n%s", told)
	}
}

func TestCovers(t *testing.T) {
	cases := map[string]struct {
		routed string
		want   bool
	}{
		"Same":             {routed: host, want: true},
		"TrailingDot":      {routed: host + ".", want: true},
		"Asterisk":         {routed: "*.acme-dev.services.example.com", want: true},
		"AsteriskOfMore":   {routed: "*.example.com", want: true},
		"AsteriskOfItself": {routed: "*." + host},
		"Suffix":           {routed: "acme-dev.services.example.com"},
		"SiblingSuffix":    {routed: "*.dev.services.example.com"},
		"Everything":       {routed: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := covers(tc.routed, host); got != tc.want {
				t.Errorf("covers(%q) = %v", tc.routed, got)
			}
		})
	}
}
