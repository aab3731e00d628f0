// Package tenant composes an XTenant: a Home, which makes the tenant's namespace and holds its settings for admission.
package tenant

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
)

// home is the name of the only child.
const home = "home"

// Compose makes a tenant's Home.
func Compose(in compose.Input) (compose.Output, error) {
	m, err := compose.MachineryOf(in.Composite)
	if err != nil {
		return compose.Output{}, err
	}
	if m.Namespace != names.SystemNamespace {
		return compose.Output{}, fmt.Errorf("tenant %q is in namespace %q: tenants live in %s only", m.Name, m.Namespace, names.SystemNamespace)
	}
	xr, err := compose.DecodeComposite[steading.Tenant](in)
	if err != nil {
		return compose.Output{}, err
	}
	observed, err := compose.DecodeChild[runtimev1.Home](in, home)
	if err != nil {
		return compose.Output{}, err
	}

	desired := desiredHome(m, xr.Spec)
	ready := false
	if observed != nil {
		if ready, err = compose.Satisfied(in, home, observed, desired); err != nil {
			return compose.Output{}, err
		}
	}
	out := compose.Output{Ready: ready}
	out.Add(home, compose.Child{Object: desired, Ready: ready})
	stands := homeReady(observed, ready)
	out.Conditions = append(out.Conditions, stands)
	status := statusOf(observed, ready)
	status.Message = stands.Message
	out.Status = &status
	if e := transition(xr.Status.Phase, status); e != nil {
		out.Events = append(out.Events, *e)
	}
	return out, nil
}

// desiredHome is the Home as the claim wants it.
func desiredHome(m compose.Machinery, spec steading.TenantSpec) *runtimev1.Home {
	id := runtimev1.Identity{Tenant: m.Name, UID: m.UID}
	return &runtimev1.Home{
		TypeMeta:   metav1.TypeMeta{APIVersion: runtimev1.GroupVersion.String(), Kind: runtimev1.HomeKind},
		ObjectMeta: compose.ObjectMeta(names.Home(m.Name), id),
		Spec: runtimev1.HomeSpec{ForProvider: runtimev1.HomeParameters{
			Identity:  id,
			Claim:     runtimev1.ClaimReference{Namespace: m.Namespace, Name: m.Name},
			Namespace: names.TenantNamespace(m.Name),
			Settings:  spec,
		}},
	}
}

// statusOf is the tenant's status, from what is seen of its Home.
func statusOf(h *runtimev1.Home, ready bool) steading.TenantStatus {
	s := steading.TenantStatus{Phase: steading.TenantPending}
	if ready {
		s.Phase = steading.TenantReady
	}
	if h != nil {
		s.Namespace = h.Status.AtProvider.Namespace
		s.Environments = h.Status.AtProvider.Environments
		s.Usage = h.Status.AtProvider.Usage
		s.RecentUsageEvents = h.Status.AtProvider.RecentUsageEvents
	}
	return s
}

// homeReady says whether the tenant's namespace stands, and if not why.
func homeReady(h *runtimev1.Home, ready bool) xpv2.Condition {
	switch {
	case ready:
		return compose.True(steading.ConditionHomeReady, steading.ReasonStands, "")
	case h == nil:
		return compose.False(steading.ConditionHomeReady, steading.ReasonPendingDecision, "the tenant's namespace is about to be made")
	default:
		return compose.NotReady(steading.ConditionHomeReady, h)
	}
}

// transition is the event for a change of phase.
func transition(before steading.TenantPhase, now steading.TenantStatus) *compose.Event {
	if before == now.Phase || now.Phase != steading.TenantReady {
		return nil
	}
	return &compose.Event{Reason: "TenantReady", Message: "owners may apply Contexts and Environments in namespace " + now.Namespace}
}
