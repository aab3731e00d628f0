package security

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
	"github.com/steading-dev/steading/test/power"
)

var update = flag.Bool("update", false, "write "+tableFile+" anew")

// TestLeastPower lives the whole life of tenants and compares what each account asked the API servers for with what it may
// do: nothing beyond it, and all of it, but for what is rare and has a test of its own.
func TestLeastPower(t *testing.T) {
	in := readInstalled(t)
	given := in.rows()
	if *update {
		updateTable(t, in.rows())
	}
	table := power.ReadTable(t, tableFile)
	wantTable(t, table, given)
	wantTests(t, table)

	bound := live(t)
	u := power.Used{}
	judged := 0
	for _, log := range []string{suite.Plane.AuditLog(), suite.Edge.AuditLog()} {
		judged += u.Judge(t, table, in.accounts, func(namespace string) bool { return strings.HasPrefix(namespace, "life") }, power.Requests(t, log))
	}
	if judged < 100 {
		t.Errorf("%d requests were judged, so this shows nothing", judged)
	}
	// The API server asks for the verb bind within the request that makes a binding, and logs nothing of it.
	for _, r := range table {
		if slices.Contains(r.Verbs, "bind") && !slices.ContainsFunc(r.Names, func(n string) bool { return !bound[n] }) {
			u.Add(r, "bind")
		}
	}
	u.Want(t, table)
}

// wantTests expects every rare use to say why, and to name a test that exists.
func wantTests(t *testing.T, table []power.Row) {
	t.Helper()
	tests := map[string]bool{}
	for _, folder := range []string{"..", "../../providers", "../../cluster"} {
		err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
					tests[fn.Name.Name] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range table {
		for _, x := range r.Rare {
			if x.Reason == "" || !tests[x.Test] {
				t.Errorf("%s: %v is rare for reason %q, but there is no test %q", r.ID(), x.Verbs, x.Reason, x.Test)
			}
		}
	}
}

// TestChartsHandOnTheDeployersPower: a chart gives its own accounts any power that the deployer has, and none that it has
// not. So what the deployer does not use itself is there for what charts bring along, such as a database's operator.
func TestChartsHandOnTheDeployersPower(t *testing.T) {
	suite.NewTenant(t, "hands", steading.TenantSpec{})
	e := harness.Environment("hands", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	c, err := harness.Client(deployerOf(t, suite.Admin, suite.Plane.Config(), "hands-dev"))
	if err != nil {
		t.Fatal(err)
	}
	handOn := func(r power.Row, verb string) error {
		rule := rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: []string{verb}}
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "hands-dev", Name: "mine"}, Rules: []rbacv1.PolicyRule{rule}}
		return client.NewDryRunClient(c).Create(t.Context(), role)
	}
	rows := 0
	for _, r := range power.ReadTable(t, tableFile) {
		if r.Account != names.Deployer {
			continue
		}
		rows++
		for _, v := range r.All() {
			if err := handOn(r, v); err != nil {
				t.Errorf("%s %s/%s cannot be handed on: %v", v, r.Group, r.Resource, err)
			}
		}
		for _, v := range []string{"impersonate", "escalate", "bind"} {
			if by := refusedBy(handOn(r, v)); by != rbac {
				t.Errorf("%s %s/%s is handed on, though the deployer may not do it: %s", v, r.Group, r.Resource, by)
			}
		}
	}
	if rows == 0 {
		t.Error("the table says nothing of the deployer")
	}
}

// TestNobodyIsAdministrator: nothing is bound to cluster-admin but the group of those who are anyway, no account outside of
// Kubernetes itself has all verbs on everything, and Crossplane gets by with less too.
func TestNobodyIsAdministrator(t *testing.T) {
	edge, err := harness.Client(suite.Edge.Config())
	if err != nil {
		t.Fatal(err)
	}
	for where, c := range map[string]client.Client{"control plane": suite.Admin, "edge": edge} {
		t.Run(where, func(t *testing.T) { power.WantNoAdministrator(t, c) })
	}
	power.WantNoAdministratorUsed(t, power.Requests(t, suite.Plane.AuditLog()))
}
