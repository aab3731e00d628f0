package tenant

import (
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
	"github.com/steading-dev/steading/functions/compose/composetest"
)

func composite(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	return composetest.Composite(t, steading.XTenantKind, &steading.Tenant{Spec: steading.TenantSpec{
		DisplayName: "Acme Ltd.", Owners: []steading.Subject{{Kind: "Group", Name: "acme-admins"}},
	}}, namespace, "acme")
}

func TestCompose(t *testing.T) {
	type want struct {
		phase  steading.TenantPhase
		ready  bool
		reason xpv2.ConditionReason
	}
	cases := map[string]struct {
		reason string
		edit   func(*runtimev1.Home)
		want   want
	}{
		"NoHomeYet": {
			reason: "A tenant without its Home is pending.",
			want:   want{phase: steading.TenantPending, reason: steading.ReasonPendingDecision},
		},
		"HomeNotReady": {
			reason: "The Home's own error reaches the tenant.",
			edit: func(h *runtimev1.Home) {
				h.SetConditions(xpv2.Creating(), xpv2.Condition{Type: xpv2.TypeSynced, Status: "False", Reason: "ReconcileError", Message: "namespace tenant-acme is not ours"})
			},
			want: want{phase: steading.TenantPending, reason: "ReconcileError"},
		},
		"HomeReady": {
			reason: "A ready Home makes the tenant ready.",
			edit:   func(h *runtimev1.Home) { h.SetConditions(xpv2.Available(), xpv2.ReconcileSuccess()) },
			want:   want{phase: steading.TenantReady, ready: true, reason: steading.ReasonStands},
		},
		"HomeReadyForAnOlderSpec": {
			reason: "A Home that is ready for other settings does not make the tenant ready.",
			edit: func(h *runtimev1.Home) {
				h.SetConditions(xpv2.Available(), xpv2.ReconcileSuccess())
				h.Spec.ForProvider.Settings.DisplayName = "Old"
			},
			want: want{phase: steading.TenantPending, reason: "Available"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := Compose(composetest.Observed(t, Compose, composite(t, "steading-system"), home, tc.edit))
			if err != nil {
				t.Fatal(err)
			}
			s := out.Status.(*steading.TenantStatus) //nolint:forcetypeassert // A test.
			if s.Phase != tc.want.phase || out.Ready != tc.want.ready || (out.Conditions[0].Status == "True") != tc.want.ready {
				t.Errorf("%s: have %s, ready %t, %+v", tc.reason, s.Phase, out.Ready, out.Conditions)
			}
			if s.Message != out.Conditions[0].Message || (s.Message == "") != (tc.want.ready || tc.want.reason == "Available") {
				t.Errorf("%s: message %q, condition %+v", tc.reason, s.Message, out.Conditions[0])
			}
			if _, ok := out.Children[home]; !ok {
				t.Errorf("%s: the Home is not desired", tc.reason)
			}
		})
	}
}

func TestTenantOutsideTheSystemNamespaceIsRefused(t *testing.T) {
	if _, err := Compose(compose.Input{Composite: composite(t, "default")}); err == nil {
		t.Fatal("no error")
	}
}
