package edge

import (
	"context"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// hostIndex finds edges by the hosts they want.
const hostIndex = "steading.dev/hosts"

// hostsOf is what an Edge is indexed by.
func hostsOf(obj client.Object) []string {
	e, ok := obj.(*v1alpha1.Edge)
	if !ok {
		return nil
	}
	hosts := make([]string, 0, len(e.Spec.ForProvider.Services))
	for _, s := range e.Spec.ForProvider.Services {
		hosts = append(hosts, strings.ToLower(s.Host))
	}
	return hosts
}

// sharing lists the edges that want any of the hosts, as the cache has them.
func sharing(ctx context.Context, cache client.Reader, hosts []string) ([]v1alpha1.Edge, error) {
	var out []v1alpha1.Edge
	for _, h := range hosts {
		l := &v1alpha1.EdgeList{}
		if err := cache.List(ctx, l, client.InNamespace(names.SystemNamespace), client.MatchingFields{hostIndex: h}); err != nil {
			return nil, errors.Wrapf(err, "cannot list the edges that want host %s", h)
		}
		out = append(out, l.Items...)
	}
	return out, nil
}

// rivals are the other edges that want one of this one's hosts. Before a host is routed they are read uncached, since one
// made a moment ago counts.
func (e *external) rivals(ctx context.Context, mg *v1alpha1.Edge, routed bool) ([]v1alpha1.Edge, error) {
	hosts := hostsOf(mg)
	var all []v1alpha1.Edge
	if routed {
		var err error
		if all, err = sharing(ctx, e.cache, hosts); err != nil {
			return nil, err
		}
	} else {
		l := &v1alpha1.EdgeList{}
		if err := e.system.List(ctx, l, client.InNamespace(names.SystemNamespace)); err != nil {
			return nil, errors.Wrap(err, "cannot list the other edges, which may want the same hosts")
		}
		all = l.Items
	}
	return slices.DeleteFunc(all, func(o v1alpha1.Edge) bool {
		return o.UID == mg.UID || !slices.ContainsFunc(hostsOf(&o), func(h string) bool { return slices.Contains(hosts, h) })
	}), nil
}

// precedes reports whether a has the better right to a host: it routes it already, or it is older.
func precedes(a, b *v1alpha1.Edge, host string) bool {
	aRoutes, bRoutes := slices.Contains(a.Status.AtProvider.Hosts, host), slices.Contains(b.Status.AtProvider.Hosts, host)
	if aRoutes != bRoutes {
		return aRoutes
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

// holder names the environment among the rivals that has the better right to a host; empty when none has.
func holder(mg *v1alpha1.Edge, rivals []v1alpha1.Edge, host string) string {
	for i := range rivals {
		o := &rivals[i]
		if slices.Contains(hostsOf(o), strings.ToLower(host)) && precedes(o, mg, host) {
			id := o.Spec.ForProvider.Identity
			return "environment " + id.Tenant + "/" + id.Environment
		}
	}
	return ""
}

// A foreignRoute is one outside the environment's namespace.
type foreignRoute struct {
	hosts []string
	by    string
	// environments is whether another environment's namespace has it.
	environments bool
}

// takes reports whether the route already has what is sent to a host. An asterisk that stands for it does when it is
// another environment's; the operator's own gives way to a host that is named.
func (r foreignRoute) takes(host string) bool {
	return slices.ContainsFunc(r.hosts, func(h string) bool {
		return covers(h, host) && (r.environments || !strings.HasPrefix(h, "*"))
	})
}

// foreignRoutes are the routes on the cluster in other namespaces than the environment's.
func foreignRoutes(ctx context.Context, pl *place, p v1alpha1.EdgeParameters) ([]foreignRoute, error) {
	var out []foreignRoute
	add := func(obj client.Object, hosts []string) {
		if obj.GetNamespace() == p.Namespace || len(hosts) == 0 {
			return
		}
		r := foreignRoute{hosts: hosts, by: called(obj) + ", which was not made by Steading"}
		if id, ok := kit.IdentityOf(obj); ok {
			r.by, r.environments = "environment "+id.Tenant+"/"+id.Environment, true
		}
		out = append(out, r)
	}
	ingresses := &networkingv1.IngressList{}
	if err := pl.provider.List(ctx, ingresses); err != nil {
		return nil, errors.Wrap(err, "cannot list the ingresses of the cluster, which may have the same hosts")
	}
	for i := range ingresses.Items {
		o := &ingresses.Items[i]
		o.SetGroupVersionKind(ingressKind)
		var hosts []string
		for _, r := range o.Spec.Rules {
			hosts = append(hosts, r.Host)
		}
		add(o, hosts)
	}
	httpRoutes := &unstructured.UnstructuredList{}
	httpRoutes.SetGroupVersionKind(httpRouteKind)
	if err := pl.provider.List(ctx, httpRoutes); err != nil && !notServed(err) {
		return nil, errors.Wrap(err, "cannot list the HTTPRoutes of the cluster, which may have the same hosts")
	}
	for i := range httpRoutes.Items {
		hosts, _, _ := unstructured.NestedStringSlice(httpRoutes.Items[i].Object, "spec", "hostnames")
		add(&httpRoutes.Items[i], hosts)
	}
	return out, nil
}

// admit the services whose hosts fit and are nobody else's, and say what is wrong with the first that is not admitted.
func (e *external) admit(ctx context.Context, mg *v1alpha1.Edge, pl *place) ([]v1alpha1.ExposedService, *problem, error) {
	p := mg.Spec.ForProvider
	routed := !slices.ContainsFunc(p.Services, func(s v1alpha1.ExposedService) bool {
		return !slices.Contains(mg.Status.AtProvider.Hosts, s.Host)
	})
	rivals, err := e.rivals(ctx, mg, routed)
	if err != nil {
		return nil, nil, err
	}
	var foreign []foreignRoute
	if pl != nil && !routed {
		if foreign, err = foreignRoutes(ctx, pl, p); err != nil {
			return nil, nil, err
		}
	}
	var admitted []v1alpha1.ExposedService
	var refused []*problem
	for _, s := range p.Services {
		if pr := e.refuse(mg, s, rivals, foreign); pr != nil {
			refused = append(refused, pr)
			continue
		}
		admitted = append(admitted, s)
	}
	return admitted, first(refused...), nil
}

func (e *external) refuse(mg *v1alpha1.Edge, s v1alpha1.ExposedService, rivals []v1alpha1.Edge, foreign []foreignRoute) *problem {
	if why := refuseHost(s, suffixOf(mg.Spec.ForProvider)); why != "" {
		return &problem{steading.ReasonNameRefused, why}
	}
	by := holder(mg, rivals, s.Host)
	for _, r := range foreign {
		if by == "" && !slices.Contains(mg.Status.AtProvider.Hosts, s.Host) && r.takes(s.Host) {
			by = r.by
		}
	}
	if by == "" {
		return nil
	}
	return problemf(steading.ReasonHostTaken, "host %s of service %s is routed by %s: remove it there, or give this environment's context another zone", s.Host, s.Name, by)
}
