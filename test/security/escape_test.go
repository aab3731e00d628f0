package security

import (
	"context"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/harness"
)

// TestEscape attempts what a tenant may not do, as its owner and as its charts. Each attempt is refused by the layer that is
// named, by the next one when that is taken away, and let through when all are: so none is refused for another reason.
func TestEscape(t *testing.T) {
	w := newWorld(t)
	all := attempts()

	t.Run("refused", func(t *testing.T) {
		for name, a := range all {
			t.Run(name, func(t *testing.T) {
				first := ""
				if len(a.by) > 0 {
					first = a.by[0]
				}
				if err := a.want(a.do(t.Context(), w.client(a.as, first != "")), first); err != nil {
					t.Error(err)
				}
			})
		}
	})

	// The provider would put back on the edge what is taken away there.
	if err := suite.Plane.Supervisor.Stop(platform.Provider); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := suite.Plane.Supervisor.Resume(context.WithoutCancel(t.Context()), platform.Provider); err != nil {
			t.Error(err)
		}
	}()
	w.withoutRBAC(t)

	t.Run("without RBAC", func(t *testing.T) {
		for name, a := range all {
			if !slices.Contains(a.by, rbac) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				next := ""
				if len(a.by) > 1 {
					next = a.by[1]
				}
				if err := a.want(a.do(t.Context(), w.client(a.as, false)), next); err != nil {
					t.Error(err)
				}
			})
		}
	})

	byPolicy := map[string][]string{}
	for name, a := range all {
		if len(a.by) > 0 && a.last() != rbac {
			byPolicy[a.last()] = append(byPolicy[a.last()], name)
		}
	}
	for policy, attempts := range byPolicy {
		t.Run("without "+policy, func(t *testing.T) {
			w.without(t, policy)
			for _, name := range attempts {
				t.Run(name, func(t *testing.T) {
					a := all[name]
					// The API server takes a moment to hear that the policy is gone.
					harness.Eventually(t, "let through", func(ctx context.Context) error { return a.want(a.do(ctx, w.client(a.as, false)), "") })
				})
			}
		})
	}
	if want, got := bindings(t), len(byPolicy); want != got {
		t.Errorf("%d policies bind tenants, and attempts were made on %d", want, got)
	}
}

// notOnTenants are policies that bind the provider, or operators, and nobody else.
var notOnTenants = []string{"refuse-losing-composites", "refuse-provider-elsewhere", "refuse-provider-foreign-namespaces", "refuse-provider-forgejo-elsewhere"}

// bindings counts the policies that bind tenants and their charts.
func bindings(t *testing.T) int {
	t.Helper()
	l := &admissionv1.ValidatingAdmissionPolicyBindingList{}
	if err := suite.Admin.List(t.Context(), l, client.MatchingLabels{"app.kubernetes.io/part-of": "steading"}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range l.Items {
		if !slices.Contains(notOnTenants, strings.TrimSuffix(b.Name, ".steading.dev")) {
			n++
		}
	}
	return n
}
