package crossplane

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// traced is what the tool prints of an object, and of those below it.
type traced struct {
	Object struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Status struct {
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
		} `json:"status"`
	} `json:"object"`
	Error    any      `json:"error"`
	Children []traced `json:"children"`
}

// lines of the tree, indented, each with whether it is ready.
func (n traced) lines(indent string) []string {
	ready := "not ready"
	for _, c := range n.Object.Status.Conditions {
		if c.Type == "Ready" && c.Status == "True" {
			ready = "ready"
		}
	}
	if n.Error != nil {
		ready = fmt.Sprint(n.Error)
	}
	slices.SortFunc(n.Children, func(a, b traced) int { return strings.Compare(a.Object.Kind, b.Object.Kind) })
	all := []string{indent + n.Object.Kind + " " + ready}
	for _, c := range n.Children {
		all = append(all, c.lines(indent+"  ")...)
	}
	return all
}

func trace(t *testing.T, kind, name, namespace string) []string {
	t.Helper()
	n := traced{}
	out := crank(t, "", "beta", "trace", kind+".steading.dev", name, "-n", namespace, "-o", "json")
	if err := json.Unmarshal([]byte(out), &n); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return n.lines("")
}

// TestTrace: the tool finds its way from a claim to all that was made for it.
func TestTrace(t *testing.T) {
	suite.NewTenant(t, "trace", steading.TenantSpec{})
	e := harness.Environment("trace", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	cases := map[string]struct {
		kind, name, namespace string
		want                  []string
	}{
		"Tenant":      {"tenant", "trace", "steading-system", []string{"Tenant ready", "  XTenant ready", "    Home ready"}},
		"Environment": {"environment", "dev", "tenant-trace", []string{"Environment ready", "  XEnvironment ready", "    Boundary ready", "    Placement ready", "    Release ready"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// A claim may read ready for a moment longer than its composite.
			harness.Eventually(t, "the whole tree", func(context.Context) error {
				if diff := cmp.Diff(tc.want, trace(t, tc.kind, tc.name, tc.namespace)); diff != "" {
					return fmt.Errorf("-want, +have:\n%s", diff)
				}
				return nil
			})
		})
	}
}
