package placement

import (
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

func clusterOf(name string, most int32, conditions ...xpv2.Condition) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{ObjectMeta: metaOf("acme-"+name, "")}
	c.Spec.ForProvider.Context, c.Spec.ForProvider.MaxEnvironments = name, most
	c.SetConditions(conditions...)
	return c
}

func unreachable() xpv2.Condition {
	c := xpv2.Unavailable()
	c.Reason = steading.ReasonTargetUnreachable
	return c
}

func TestEnvironmentsArePlacedOnClusters(t *testing.T) {
	edge := clusterOf("edge", 1, xpv2.Available())
	edge.Spec.ForProvider.Zone = "services.example.com"
	edge.Spec.ForProvider.Ingress = &steading.ContextIngress{ClassName: "traefik"}
	w := newWorld(t, homeOf(), placementOf("a"), placementOf("b"), placementOf("c", in("down")),
		clusterOf("down", 5, unreachable()), edge, clusterOf("new", 5))
	w.reconcile()

	o := w.placement("a").Status.AtProvider
	if o.Grant == nil || o.Grant.Context != "edge" || o.Grant.Reason != steading.PlacementFirstWithRoom {
		t.Errorf("grant %+v", o.Grant)
	}
	if o.Exposure == nil || o.Exposure.Zone != "services.example.com" || o.Exposure.Ingress.ClassName != "traefik" {
		t.Errorf("exposure %+v", o.Exposure)
	}
	for env, want := range map[string]v1alpha1.Refusal{
		"b": {Reason: "AllContextsFull", Placing: true, Message: "all 1 running contexts of the tenant are full: edge holds 1 of 1; delete an environment, raise a context's spec.maxEnvironments, or apply another Context"},
		"c": {Reason: "ContextNotRunning", Placing: true, Message: `context "down" is not running (TargetUnreachable): see its conditions, or name another in spec.contextRef.name`},
	} {
		if diff := cmp.Diff(&want, w.placement(env).Status.AtProvider.Refusal); diff != "" {
			t.Errorf("%s: -want, +have:\n%s", env, diff)
		}
	}
	for name, want := range map[string]steading.ContextUse{"edge": {Used: 1}, "new": {Free: 5}} {
		c := &v1alpha1.Cluster{}
		w.get(c, "acme-"+name)
		if diff := cmp.Diff(&want, c.Status.AtProvider.Environments); diff != "" {
			t.Errorf("%s: -want, +have:\n%s", name, diff)
		}
	}
}

func TestWhyAClusterTakesNone(t *testing.T) {
	leaving := clusterOf("edge", 1, xpv2.Available())
	now := metav1.Now()
	leaving.DeletionTimestamp = &now
	for want, c := range map[string]*v1alpha1.Cluster{
		"":                  clusterOf("edge", 1, xpv2.Available()),
		"Pending":           clusterOf("edge", 1),
		"TargetUnreachable": clusterOf("edge", 1, unreachable()),
		"Deleting":          leaving,
	} {
		if have := contextOf(c).Problem; have != want {
			t.Errorf("want %q, have %q", want, have)
		}
	}
}

func TestAClusterThatComesUpWakesItsTenant(t *testing.T) {
	down, up := clusterOf("edge", 1, xpv2.Unavailable()), clusterOf("edge", 1, xpv2.Available())
	told := clusterOf("edge", 1, xpv2.Available())
	told.Status.AtProvider.Environments = &steading.ContextUse{Used: 1}
	p := contextChanged()
	if !p.Update(event.UpdateEvent{ObjectOld: down, ObjectNew: up}) || !p.Update(event.UpdateEvent{ObjectOld: up, ObjectNew: down}) {
		t.Error("coming up or going down wakes nobody")
	}
	if p.Update(event.UpdateEvent{ObjectOld: up, ObjectNew: told}) {
		t.Error("admission's own report wakes it")
	}
}

func TestStandingHomesWakeAdmission(t *testing.T) {
	stands, not, foreign, reported := homeOf(), homeOf(), homeOf(), homeOf()
	not.Status.AtProvider.Namespace = ""
	foreign.SetConditions(xpv2.Condition{Type: xpv2.TypeReady, Status: "False", Reason: steading.ReasonForeignNamespace})
	reported.Status.AtProvider.Environments = &steading.EnvironmentCounts{Total: 1}
	p := standingChanged()
	for name, tc := range map[string]struct {
		before, after *v1alpha1.Home
		want          bool
	}{
		"Made": {not, stands, true}, "Lost": {stands, not, true}, "Taken": {stands, foreign, true}, "TakenOver": {foreign, stands, true},
		"Reported": {stands, reported, false},
	} {
		if have := p.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); have != tc.want {
			t.Errorf("%s: wakes is %v", name, have)
		}
	}
}
