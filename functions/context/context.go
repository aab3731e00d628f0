// Package context composes an XContext: a Cluster, which keeps the credential of a tenant's target cluster, watches it
// and guards it.
package context

import (
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
)

// cluster is the name of the only child.
const cluster = "cluster"

// Compose makes a context's Cluster.
func Compose(in compose.Input) (compose.Output, error) {
	m, err := compose.MachineryOf(in.Composite)
	if err != nil {
		return compose.Output{}, err
	}
	tenant, ok := names.TenantOf(m.Namespace)
	if !ok {
		return compose.Output{}, fmt.Errorf("context %q is in namespace %q: contexts live in a tenant's namespace, tenant-<tenant>", m.Name, m.Namespace)
	}
	xr, err := compose.DecodeComposite[steading.Context](in)
	if err != nil {
		return compose.Output{}, err
	}
	observed, err := compose.DecodeChild[runtimev1.Cluster](in, cluster)
	if err != nil {
		return compose.Output{}, err
	}

	desired := desiredCluster(m, tenant, xr.Spec)
	ready := false
	if observed != nil {
		if ready, err = compose.Satisfied(in, cluster, observed, desired); err != nil {
			return compose.Output{}, err
		}
		// What the claim says now was tried and does not work, though what it said before still does.
		ready = ready && observed.GetCondition(xpv2.TypeSynced).Status != "False"
	}
	out := compose.Output{Ready: ready, Conditions: conditions(observed)}
	out.Add(cluster, compose.Child{Object: desired, Ready: ready})
	status := statusOf(xr.Spec, observed, out.Conditions)
	out.Status = &status
	if e := transition(xr.Status, status); e != nil {
		out.Events = append(out.Events, *e)
	}
	return out, nil
}

// desiredCluster is the Cluster as the claim wants it.
func desiredCluster(m compose.Machinery, tenant string, spec steading.ContextSpec) *runtimev1.Cluster {
	id := runtimev1.Identity{Tenant: tenant, UID: m.UID}
	meta := compose.ObjectMeta(names.Context(tenant, m.Name), id)
	meta.Labels[names.LabelContext] = m.Name
	places := int32(steading.DefaultMaxEnvironmentsOfContext)
	if spec.MaxEnvironments != nil {
		places = *spec.MaxEnvironments
	}
	return &runtimev1.Cluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: runtimev1.GroupVersion.String(), Kind: runtimev1.ClusterKind},
		ObjectMeta: meta,
		Spec: runtimev1.ClusterSpec{ForProvider: runtimev1.ClusterParameters{
			Identity:        id,
			Claim:           runtimev1.ClaimReference{Namespace: m.Namespace, Name: m.Name},
			Context:         m.Name,
			Server:          spec.Server,
			CABundle:        spec.CABundle,
			Credentials:     spec.Credentials,
			MaxEnvironments: places,
			Ingress:         spec.Ingress,
			Zone:            spec.Zone,
			Drain:           spec.Drain,
		}},
	}
}

// conditions say whether the cluster is reached and guarded.
func conditions(c *runtimev1.Cluster) []xpv2.Condition {
	if c == nil {
		return []xpv2.Condition{compose.False(steading.ConditionReachable, steading.ReasonPendingDecision, "the cluster has not been tried yet")}
	}
	reachable := compose.NotReady(steading.ConditionReachable, c)
	if runs(c) {
		reachable = compose.True(steading.ConditionReachable, steading.ReasonReachable, refused(c))
	}
	guarded := compose.True(steading.ConditionGuarded, steading.ReasonGuarded, "")
	if !c.Status.AtProvider.Guarded {
		guarded = compose.False(steading.ConditionGuarded, steading.ReasonNotGuarded, c.Status.AtProvider.GuardMessage)
	}
	return []xpv2.Condition{reachable, guarded}
}

// runs reports whether the cluster is reached, be it by the last good credential only.
func runs(c *runtimev1.Cluster) bool { return c.GetCondition(xpv2.TypeReady).Status == "True" }

// refused says what is wrong with what the claim says now, empty when nothing is.
func refused(c *runtimev1.Cluster) string {
	if s := c.GetCondition(xpv2.TypeSynced); s.Status == "False" {
		return s.Message
	}
	return ""
}

// statusOf is the context's status, from what is seen of its Cluster.
func statusOf(spec steading.ContextSpec, c *runtimev1.Cluster, cs []xpv2.Condition) steading.ContextStatus {
	s := steading.ContextStatus{Phase: steading.ContextPending}
	for _, cond := range cs {
		if cond.Message != "" {
			s.Message = cond.Message
			break
		}
	}
	if c == nil {
		return s
	}
	o := c.Status.AtProvider
	s.Version, s.Environments = o.Version, o.Environments
	guarded := o.Guarded
	s.Guarded = &guarded
	switch {
	case runs(c) && spec.Drain:
		s.Phase = steading.ContextDraining
	case runs(c):
		s.Phase = steading.ContextRunning
	case c.GetCondition(xpv2.TypeReady).Reason == steading.ReasonTargetUnreachable, !o.Reachable && o.Version != "":
		s.Phase = steading.ContextUnreachable
	}
	return s
}

// transition is the event for a change of phase.
func transition(before, now steading.ContextStatus) *compose.Event {
	if before.Phase == now.Phase {
		return nil
	}
	switch now.Phase {
	case steading.ContextRunning:
		return &compose.Event{Reason: "Running", Message: "the cluster answers, version " + now.Version}
	case steading.ContextDraining:
		return &compose.Event{Reason: "Draining", Message: "keeps what it has and takes no more environments"}
	case steading.ContextUnreachable:
		return &compose.Event{Warning: true, Reason: "Unreachable", Message: now.Message}
	default:
		return nil
	}
}
