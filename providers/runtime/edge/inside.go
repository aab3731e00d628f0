package edge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// An inside is what was seen of an Edge in the environment's namespace.
type inside struct {
	todo []change
	// problem with the place as a whole, or with a route.
	problem *problem
	// hosts that are routed.
	hosts []string
	// copied is whether the routes have a certificate.
	copied bool
	// uncopied is why they cannot have it.
	uncopied *problem
}

// lookInside compares what is in the environment's namespace with what should be. Source is the Secret of the certificate,
// nil while there is none; a copy of one that was is kept.
func (e *external) lookInside(ctx context.Context, mg *v1alpha1.Edge, pl *place, services []v1alpha1.ExposedService, source *corev1.Secret) (*inside, error) {
	p := mg.Spec.ForProvider
	in := &inside{hosts: held(mg, services)}
	var err error
	if in.problem, err = e.refusePlace(ctx, p, pl); in.problem != nil || err != nil {
		return in, err
	}
	if suffix := suffixOf(p); pl.namespace.GetAnnotations()[names.AnnotationHostSuffix] != suffix {
		in.todo = append(in.todo, annotate(pl, suffix))
		// Until the API server has seen the annotation, its policy refuses routes.
		in.problem = exposing
		return in, nil
	}
	if err := e.lookAtCopy(ctx, p, pl, source, in); err != nil {
		return nil, err
	}
	return in, e.lookAtRoutes(ctx, p, pl, services, in)
}

// held are the hosts of the services that were routed when it was last looked. They stay so while something is in the way
// of looking, or is repaired.
func held(mg *v1alpha1.Edge, services []v1alpha1.ExposedService) []string {
	var hosts []string
	for _, s := range services {
		if slices.Contains(mg.Status.AtProvider.Hosts, s.Host) {
			hosts = append(hosts, s.Host)
		}
	}
	return hosts
}

// refusePlace says why nothing can be done in the namespace.
func (e *external) refusePlace(ctx context.Context, p v1alpha1.EdgeParameters, pl *place) (*problem, error) {
	if pl.namespace == nil {
		return problemf(steading.ReasonExposing, "namespace %s does not stand yet", p.Namespace), nil
	}
	if err := e.ours(ctx, pl.namespace, p); err != nil {
		pr, err := asProblem(err)
		if pr != nil && pr.reason == steading.ReasonNotOurs {
			pr.reason = steading.ReasonForeignNamespace
		}
		return pr, err
	}
	if pl.namespace.DeletionTimestamp != nil {
		return problemf(steading.ReasonNamespaceBlocked, "namespace %s is being deleted", p.Namespace), nil
	}
	if pl.deployer == nil {
		return problemf(steading.ReasonExposing, "namespace %s has no account %s yet, as which routes are made", p.Namespace, names.Deployer), nil
	}
	return nil, nil //nolint:nilnil // There is no problem.
}

// annotate the namespace with what its hosts end in; empty takes the annotation away.
func annotate(pl *place, suffix string) change {
	var value *string
	if suffix != "" {
		value = &suffix
	}
	// The UID, so that it is not another namespace of the same name that is annotated.
	raw, _ := json.Marshal(map[string]any{"metadata": map[string]any{ //nolint:errchkjson // Strings cannot fail.
		"uid": pl.namespace.UID, "annotations": map[string]*string{names.AnnotationHostSuffix: value},
	}})
	return change{as: pl.provider, have: pl.namespace, patch: client.RawPatch(types.MergePatchType, raw)}
}

func (e *external) lookAtCopy(ctx context.Context, p v1alpha1.EdgeParameters, pl *place, source *corev1.Secret, in *inside) error {
	shape := source
	if shape == nil {
		shape = &corev1.Secret{}
	}
	want := secretCopy(p, shape)
	have, exists, err := find(ctx, pl.deployer, want)
	if err != nil {
		return err
	}
	if exists {
		if err := e.ours(ctx, have, p); err != nil {
			in.uncopied, err = asProblem(err)
			return err
		}
	}
	switch {
	case source == nil:
		in.copied = exists
	case !exists:
		in.todo = append(in.todo, change{as: pl.deployer, want: want})
	case have.Type != want.Type:
		// A Secret's type is for life.
		in.todo = append(in.todo, change{as: pl.deployer, have: have})
	case differs(want, have):
		in.todo, in.copied = append(in.todo, change{as: pl.deployer, want: want, have: have}), true
	default:
		in.copied = true
	}
	return nil
}

// lookAtRoutes compares the routes. One that is right is not yet one that works: a Gateway may refuse it.
func (e *external) lookAtRoutes(ctx context.Context, p v1alpha1.EdgeParameters, pl *place, services []v1alpha1.ExposedService, in *inside) error {
	wanted, err := routes(p, services, in.copied)
	if err != nil {
		return errors.Wrap(err, "cannot write the routes")
	}
	standing, err := routesOf(ctx, pl, p)
	if err != nil {
		return err
	}
	if p.Exposure.Ingress.GatewayRef != nil && !standing.gateways && len(wanted) > 0 {
		pl.refresh()
		in.problem = problemf(steading.ReasonOperatorMissing, "the cluster of context %s does not serve HTTPRoutes (%s): install the Gateway API there, or give the context an ingress class", p.Context, httpRouteKind.GroupVersion())
		wanted = nil
	}
	keep, held := map[string]bool{}, in.hosts
	in.hosts = nil
	for _, want := range wanted {
		keep[called(want)] = true
		pr, err := e.lookAtRoute(ctx, p, pl, want, in)
		if err != nil {
			return err
		}
		in.problem = first(in.problem, pr)
		for _, h := range routedBy(want) {
			// A route that is repaired is not given up.
			if pr == nil || pr.reason == steading.ReasonExposing && slices.Contains(held, h) {
				in.hosts = append(in.hosts, h)
			}
		}
	}
	for i := range standing.items {
		if o := &standing.items[i]; !keep[called(o)] {
			in.todo = append(in.todo, change{as: pl.deployer, have: o})
		}
	}
	return nil
}

// lookAtRoute compares one route.
func (e *external) lookAtRoute(ctx context.Context, p v1alpha1.EdgeParameters, pl *place, want *unstructured.Unstructured, in *inside) (*problem, error) {
	have, exists, err := find(ctx, pl.deployer, want)
	if err != nil {
		return nil, err
	}
	if !exists {
		in.todo = append(in.todo, change{as: pl.deployer, want: want})
		return exposing, nil
	}
	if err := e.ours(ctx, have, p); err != nil {
		return asProblem(err)
	}
	if differs(want, have) {
		in.todo = append(in.todo, change{as: pl.deployer, want: want, have: have})
		if !slices.Equal(routedBy(want), routedBy(have)) {
			return exposing, nil
		}
	}
	if want.GroupVersionKind() == httpRouteKind {
		pr := accepted(have, *p.Exposure.Ingress.GatewayRef)
		if pr != nil && pr.reason == steading.ReasonExposing && e.fresh(ctx, have) {
			pr = exposing
		}
		return pr, nil
	}
	return nil, nil //nolint:nilnil // There is no problem.
}

// accepted asks whether the Gateway takes a route, and finds what it leads to.
func accepted(route *unstructured.Unstructured, gateway steading.GatewayReference) *problem {
	parents, _, _ := unstructured.NestedSlice(route.Object, "status", "parents")
	seen := false
	for _, parent := range parents {
		m, ok := parent.(map[string]any)
		if !ok {
			continue
		}
		seen = true
		for _, c := range conditionsOf(m) {
			if (c.kind == "Accepted" || c.kind == "ResolvedRefs") && c.status == "False" {
				return problemf(steading.ReasonRouteRefused, "Gateway %s/%s says of %s: %s: %s", gateway.Namespace, gateway.Name, called(route), c.reason, c.message)
			}
		}
	}
	if !seen {
		return problemf(steading.ReasonExposing, "Gateway %s/%s has not accepted %s yet: does it exist, and does it allow routes from this namespace?", gateway.Namespace, gateway.Name, called(route))
	}
	return nil
}

// routedBy are the hosts of a route of ours.
func routedBy(route *unstructured.Unstructured) []string {
	if hosts, ok, _ := unstructured.NestedStringSlice(route.Object, "spec", "hostnames"); ok {
		return hosts
	}
	rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
	hosts := make([]string, 0, len(rules))
	for _, r := range rules {
		if m, ok := r.(map[string]any); ok {
			hosts = append(hosts, fmt.Sprint(m["host"]))
		}
	}
	return hosts
}

// ownRoutes are the routes in a namespace that carry the environment's identity.
type ownRoutes struct {
	items []unstructured.Unstructured
	// gateways is whether the cluster serves HTTPRoutes.
	gateways bool
}

func routesOf(ctx context.Context, pl *place, p v1alpha1.EdgeParameters) (ownRoutes, error) {
	out := ownRoutes{}
	for _, kind := range []schema.GroupVersionKind{ingressKind, httpRouteKind} {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(kind)
		err := pl.deployer.List(ctx, l, client.InNamespace(p.Namespace), madeInside(p.Identity))
		if notServed(err) {
			continue
		}
		if err != nil {
			return out, errors.Wrapf(err, "cannot list the routes in namespace %s", p.Namespace)
		}
		out.items = append(out.items, l.Items...)
		out.gateways = out.gateways || kind == httpRouteKind
	}
	return out, nil
}

// madeInside selects what an Edge made in an environment's namespace.
func madeInside(id v1alpha1.Identity) client.MatchingLabels {
	l := kit.Labels(id)
	l[names.LabelManagedBy] = managedInside
	return l
}
