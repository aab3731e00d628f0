package argocd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// passing are the reasons of conditions that do not hold yet and will by themselves. In Lua they are in the list waiting.
var passing = []string{
	"PendingDecision", "WaitingForPlacement", "WaitingForBoundary", "WaitingForDependents", "TenantNotReady", "NotAdmitted",
	"Planned", "RollingOut", "Exposing", "Issuing", "NotExposed", "DefinitionsNotReady",
	"CredentialPending",
}

// good are the reasons of conditions that hold.
var good = []string{
	// A pool that was asked to be suspended is, which is tested with pools.
	"Polled", "Making", "Suspended",
	"Reachable", "Guarded", "Exposed", "Issued", "Granted", "Placed", "Stands", "Deployed", "Stopped", "Record", "NoComponents", "Current",
}

// TestEveryReasonIsSeriousUnlessItPasses: a person has to know of a reason that nobody has told the script about.
func TestEveryReasonIsSeriousUnlessItPasses(t *testing.T) {
	environment := load(t, "ready")["Environment"]
	reasons := reasons(t)
	for _, r := range slices.Concat(passing, good) {
		if !slices.Contains(reasons, r) {
			t.Errorf("there is no reason %s", r)
		}
	}
	asked := map[string]*unstructured.Unstructured{}
	wants := map[string]health{}
	for _, r := range reasons {
		if slices.Contains(good, r) {
			continue
		}
		status := degraded
		if slices.Contains(passing, r) {
			status = progressing
		}
		asked[r] = with(environment, says("Ready", "False", "Waiting", ""), says("Deployed", "False", r, "why"))
		wants[r] = health{status, "why"}
	}
	check(t, asked, wants)
}

// reasons are the values of the constants in apis/v1alpha1/conditions.go.
func reasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../apis/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			t.Fatalf("%s is not a string", spec.Names[0].Name)
		}
		value, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, value)
		return true
	})
	if len(all) == 0 {
		t.Fatal("there is no reason at all")
	}
	return all
}
