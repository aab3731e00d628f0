package context

import (
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
	"github.com/steading-dev/steading/functions/compose/composetest"
)

func composite(t *testing.T, namespace string, drain bool) *unstructured.Unstructured {
	t.Helper()
	return composetest.Composite(t, steading.XContextKind, &steading.Context{Spec: steading.ContextSpec{
		Server: "https://203.0.113.7:6443", CABundle: []byte("PEM"), Drain: drain, Zone: "services.example.com",
		Credentials: steading.ContextCredentials{SecretRef: &steading.LocalSecretReference{Name: "edge-admin"}},
	}}, namespace, "edge")
}

func TestCompose(t *testing.T) {
	cases := map[string]struct {
		reason  string
		drain   bool
		edit    func(*runtimev1.Cluster)
		phase   steading.ContextPhase
		message string
		ready   bool
	}{
		"NotTried": {
			reason: "A context whose cluster was not tried is pending.", phase: steading.ContextPending,
			message: "the cluster has not been tried yet",
		},
		"Running": {
			reason: "A reached, guarded cluster runs.", phase: steading.ContextRunning, ready: true,
			edit: func(c *runtimev1.Cluster) {
				c.SetConditions(xpv2.Available(), xpv2.ReconcileSuccess())
				c.Status.AtProvider = runtimev1.ClusterObservation{Reachable: true, Guarded: true, Version: "v1.35.4"}
			},
		},
		"Draining": {
			reason: "A drained context is ready, and says that it drains.", phase: steading.ContextDraining, ready: true, drain: true,
			edit: func(c *runtimev1.Cluster) {
				c.SetConditions(xpv2.Available(), xpv2.ReconcileSuccess())
				c.Status.AtProvider = runtimev1.ClusterObservation{Reachable: true, Guarded: true, Version: "v1.35.4"}
			},
		},
		"Unguarded": {
			reason: "A cluster that may not be guarded runs, and the message says why it is not.", phase: steading.ContextRunning, ready: true,
			message: "the credential may not write admission policies",
			edit: func(c *runtimev1.Cluster) {
				c.SetConditions(xpv2.Available(), xpv2.ReconcileSuccess())
				c.Status.AtProvider = runtimev1.ClusterObservation{Reachable: true, GuardMessage: "the credential may not write admission policies"}
			},
		},
		"Unreachable": {
			reason: "A cluster that stopped answering is unreachable.", phase: steading.ContextUnreachable, message: "no answer in 10s",
			edit: func(c *runtimev1.Cluster) {
				c.SetConditions(xpv2.Unavailable().WithMessage("no answer in 10s"), xpv2.ReconcileSuccess())
				c.Status.AtProvider = runtimev1.ClusterObservation{Guarded: true, Version: "v1.35.4"}
			},
		},
		"LastGoodCredential": {
			reason: "A new credential that does not work leaves the context running on the old one, not ready, with the reason.", phase: steading.ContextRunning,
			message: "the API server refuses the token",
			edit: func(c *runtimev1.Cluster) {
				c.SetConditions(xpv2.Available(), xpv2.Condition{Type: xpv2.TypeSynced, Status: "False", Reason: "ReconcileError", Message: "the API server refuses the token"})
				c.Status.AtProvider = runtimev1.ClusterObservation{Reachable: true, Guarded: true, Version: "v1.35.4"}
			},
		},
		"WrongCiphertext": {
			reason: "A credential that never worked leaves the context pending, with the reason.", phase: steading.ContextPending,
			message: "the ciphertext was made for context other",
			edit: func(c *runtimev1.Cluster) {
				c.SetConditions(xpv2.Creating(), xpv2.Condition{Type: xpv2.TypeSynced, Status: "False", Reason: "ReconcileError", Message: "the ciphertext was made for context other"})
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := Compose(composetest.Observed(t, Compose, composite(t, "tenant-acme", tc.drain), cluster, tc.edit))
			if err != nil {
				t.Fatal(err)
			}
			s := out.Status.(*steading.ContextStatus) //nolint:forcetypeassert // A test.
			if s.Phase != tc.phase || s.Message != tc.message || out.Ready != tc.ready {
				t.Errorf("%s: have %s, %q, ready %t", tc.reason, s.Phase, s.Message, out.Ready)
			}
			if _, ok := out.Children[cluster]; !ok {
				t.Errorf("%s: the Cluster is not desired", tc.reason)
			}
		})
	}
}

func TestContextOutsideATenantIsRefused(t *testing.T) {
	if _, err := Compose(compose.Input{Composite: composite(t, "default", false)}); err == nil {
		t.Fatal("no error")
	}
}
