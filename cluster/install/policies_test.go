package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/test/harness"
	"github.com/steading-dev/steading/test/harness/try"
)

// An attempt to do something, without doing it: admission is asked all the same.
type attempt struct {
	reason string
	as     user
	do     try.Deed
	// want is what the refusal says. Empty: the attempt is accepted.
	want string
}

// The words of the attempts.
var (
	create, apply, remove, token = try.Create, try.Apply, try.Remove, try.Token
	change, changeStatus         = try.Change, try.ChangeStatus
	replace                      = try.Replace
)

// TestInstalled applies base to a cluster and tries what it lets whom do.
func TestInstalled(t *testing.T) {
	c := startCluster(t)
	c.waitEnforced(t, allAttempts())
	t.Run("policies", c.testPolicies)
	t.Run("power", c.testPower)
	t.Run("grants", c.testGrants)
	t.Run("no expression is ill-typed", c.checkTypes)
}

// testPolicies: each policy refuses what it is for and says why, accepts what is like it and right, and is the only one
// that refuses: without its binding all of that is accepted.
func (c *cluster) testPolicies(t *testing.T) {
	cases := allAttempts()
	if missing := slices.DeleteFunc(slices.Sorted(maps.Keys(policies(t))), func(p string) bool { return len(cases[p]) > 0 }); len(missing) > 0 {
		t.Errorf("policies without a test: %v", missing)
	}
	for _, policy := range slices.Sorted(maps.Keys(cases)) {
		t.Run(policy, func(t *testing.T) {
			for name, a := range cases[policy] {
				t.Run(name, func(t *testing.T) { c.try(t, policy, a) })
			}
			c.withoutBinding(t, policy, func() {
				for name, a := range cases[policy] {
					if a.want == "" {
						continue
					}
					harness.Eventually(t, name+" without "+policy+" ("+a.reason+")", func(context.Context) error { return a.do(t.Context(), c.as(t, a.as)) })
				}
			})
		})
	}
}

// try an attempt and judge the answer.
func (c *cluster) try(t *testing.T, policy string, a attempt) {
	t.Helper()
	err := a.do(t.Context(), c.as(t, a.as))
	if a.want == "" {
		if err != nil {
			t.Errorf("%s\n%s: got refused: %v", a.reason, a.as.name, err)
		}
		return
	}
	switch {
	case err == nil:
		t.Errorf("%s\n%s: got accepted, want refused: %s", a.reason, a.as.name, a.want)
	case !strings.Contains(err.Error(), "'"+policy+".steading.dev'"):
		t.Errorf("%s\n%s: got refused by another: %v", a.reason, a.as.name, err)
	case !strings.Contains(err.Error(), a.want):
		t.Errorf("%s\n%s: got refused with %v, want %q", a.reason, a.as.name, err, a.want)
	}
}

// waitEnforced waits until each policy refuses something: they reach the API server a moment after they are stored.
func (c *cluster) waitEnforced(t *testing.T, cases map[string]map[string]attempt) {
	t.Helper()
	for policy, attempts := range cases {
		for _, a := range attempts {
			if a.want == "" {
				continue
			}
			harness.Eventually(t, policy+" is enforced", func(context.Context) error {
				if err := a.do(t.Context(), c.as(t, a.as)); err == nil || !strings.Contains(err.Error(), policy) {
					return errors.Join(fmt.Errorf("%s by %s was not refused by it", a.reason, a.as.name), err)
				}
				return nil
			})
			break
		}
	}
}

// withoutBinding does something while the policy is not bound.
func (c *cluster) withoutBinding(t *testing.T, policy string, do func()) {
	t.Helper()
	b := &admissionv1.ValidatingAdmissionPolicyBinding{}
	key := client.ObjectKey{Name: policy + ".steading.dev"}
	if err := c.plane.Client().Get(t.Context(), key, b); err != nil {
		t.Fatal(err)
	}
	if err := c.plane.Client().Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	do()
	b.ResourceVersion, b.UID = "", ""
	if err := c.plane.Client().Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	c.waitEnforced(t, map[string]map[string]attempt{policy: allAttempts()[policy]})
}

// checkTypes asks what the API server's type checker found.
func (c *cluster) checkTypes(t *testing.T) {
	for name := range policies(t) {
		p := &admissionv1.ValidatingAdmissionPolicy{}
		harness.Eventually(t, name+" is checked", func(context.Context) error {
			if err := c.plane.Client().Get(t.Context(), client.ObjectKey{Name: name + ".steading.dev"}, p); err != nil {
				return err
			}
			if p.Status.ObservedGeneration != p.Generation {
				return fmt.Errorf("observed generation is %d, generation %d", p.Status.ObservedGeneration, p.Generation)
			}
			return nil
		})
		if p.Status.TypeChecking == nil {
			continue
		}
		for _, w := range p.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s: %s", name, w.FieldRef, w.Warning)
		}
	}
}
