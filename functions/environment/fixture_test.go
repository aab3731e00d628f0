package environment

import (
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
	"github.com/steading-dev/steading/functions/compose/composetest"
)

// composite is an XEnvironment of tenant acme bound to the claim dev.
func composite(t *testing.T, spec steading.EnvironmentSpec, status steading.EnvironmentStatus) *unstructured.Unstructured {
	t.Helper()
	return composetest.Composite(t, steading.XEnvironmentKind, &steading.Environment{Spec: spec, Status: status}, "tenant-acme", "dev")
}

func object(t *testing.T, o any) *unstructured.Unstructured {
	t.Helper()
	return composetest.Object(t, o)
}

// observed is what the API server would hold after out was applied.
func observed(t *testing.T, in compose.Input, out compose.Output) compose.Input {
	t.Helper()
	next := compose.Input{Composite: in.Composite.DeepCopy(), Children: map[string]*unstructured.Unstructured{}}
	st := object(t, out.Status)
	next.Composite.Object["status"] = st.Object
	for name, c := range out.Children {
		u := object(t, c.Object)
		u.SetGeneration(1)
		if was, ok := in.Children[name]; ok {
			u.Object["status"] = was.Object["status"]
			u.SetGeneration(was.GetGeneration())
		}
		next.Children[name] = u
	}
	return next
}

// edit changes an observed child as its controller would.
func edit[T any](t *testing.T, in compose.Input, name string, change func(*T)) {
	t.Helper()
	o, err := compose.DecodeChild[T](in, name)
	if err != nil || o == nil {
		t.Fatalf("child %q: %v, %v", name, o, err)
	}
	change(o)
	in.Children[name] = object(t, o)
}

func ready(mr interface {
	client.Object
	SetConditions(c ...xpv2.Condition)
}) {
	mr.SetConditions(xpv2.Available().WithObservedGeneration(mr.GetGeneration()), xpv2.ReconcileSuccess())
}

func grant(p *runtimev1.Placement) {
	caps := *steading.MustResources("8", "20Gi", "40Gi")
	p.Status.AtProvider.Grant = &runtimev1.Grant{
		Context: "platform", Reason: steading.PlacementPlatformFallback, Caps: &caps, Version: p.Spec.ForProvider.Request.Version,
		Chart: &runtimev1.Chart{Repository: "example.com/charts/runtime", Version: "0.1.0", Digest: "sha256:abc"},
	}
	p.Status.AtProvider.Refusal = nil
	p.Status.AtProvider.DecidedGeneration = p.GetGeneration()
	p.Status.AtProvider.Tenant = &runtimev1.TenantSettings{Owners: []steading.Subject{{Kind: "Group", Name: "acme-admins"}}}
	ready(p)
}

func deployed(r *runtimev1.Release) {
	f := r.Spec.ForProvider
	r.Status.AtProvider = runtimev1.ReleaseObservation{
		State: runtimev1.ReleaseDeployed, Revision: 1,
		Deployed: &runtimev1.Deployed{Version: f.Version, Power: f.Power, Caps: f.Caps, Revision: 1},
		Image:    &steading.ChosenImage{Ref: "example.com/devops:" + f.Version, Choice: steading.ImageCanonical, Reason: "NoRegistry"},
	}
	ready(r)
}

func condition(out compose.Output, t xpv2.ConditionType) xpv2.Condition {
	for _, c := range out.Conditions {
		if c.Type == t {
			return c
		}
	}
	return xpv2.Condition{}
}

func mcp() steading.Expose { return steading.Expose{Services: []string{"mcp"}} }

func exposable(p *runtimev1.Placement) {
	grant(p)
	p.Status.AtProvider.Exposure = &runtimev1.Exposure{Zone: "services.example.com", Ingress: steading.ContextIngress{Addresses: []string{"203.0.113.7"}, ClassName: "traefik"}}
}
