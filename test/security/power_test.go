package security

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
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
	table := readTable(t)
	wantTable(t, table, given)
	wantTests(t, table)

	bound := live(t)
	u := used{}
	judged := 0
	for _, log := range []string{suite.Plane.AuditLog(), suite.Edge.AuditLog()} {
		judged += u.judge(t, table, in.accounts, requests(t, log))
	}
	if judged < 100 {
		t.Errorf("%d requests were judged, so this shows nothing", judged)
	}
	// The API server asks for the verb bind within the request that makes a binding, and logs nothing of it.
	for _, r := range table {
		if slices.Contains(r.Verbs, "bind") && !slices.ContainsFunc(r.Names, func(n string) bool { return !bound[n] }) {
			u.add(r, "bind")
		}
	}
	u.want(t, table)
}

// used are the verbs that were used, by row.
type used map[string]map[string]bool

func (u used) add(r row, verb string) {
	if u[r.id()] == nil {
		u[r.id()] = map[string]bool{}
	}
	u[r.id()][verb] = true
}

// judge the requests of our accounts, and of the deployers of tenants that live: each has to be within a row. It returns how
// many there are.
func (u used) judge(t *testing.T, table []row, accounts []string, all []request) int {
	t.Helper()
	judged, beyond := 0, map[string]int{}
	for _, q := range all {
		namespace, account := q.account()
		if !slices.Contains(accounts, account) && (account != names.Deployer || !strings.HasPrefix(namespace, "life")) {
			continue
		}
		judged++
		within, role := false, q.allowedBy()
		for _, r := range table {
			if r.Account != account || !r.covers(q) {
				continue
			}
			// The API server may know of a binding a moment after the provider has made it, and forbid what it gives until then.
			within = within || r.Role == role || role == ""
			// The API server names the first role that allows it. The others would do as well.
			if r.Role == role || r.holds(q.ObjectRef.Namespace) {
				u.add(r, q.Verb)
			}
		}
		if !within && !slices.Contains(anybody, role) {
			beyond[fmt.Sprintf("%s: %s %s %s %s/%s: %s", account, q.Verb, q.ObjectRef.APIGroup, q.resource(), q.ObjectRef.Namespace, q.ObjectRef.Name, q.Annotations["authorization.k8s.io/reason"])]++
		}
	}
	for what, n := range beyond {
		t.Errorf("beyond the table, %d times: %s", n, what)
	}
	return judged
}

// want every verb of the table to have been used, but for the rare ones.
func (u used) want(t *testing.T, table []row) {
	t.Helper()
	for _, r := range table {
		for _, v := range r.Verbs {
			if !u[r.id()][v] {
				t.Errorf("not used: %s: %s", r.id(), v)
			}
		}
	}
}

// wantTests expects every rare use to say why, and to name a test that exists.
func wantTests(t *testing.T, table []row) {
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
				t.Errorf("%s: %v is rare for reason %q, but there is no test %q", r.id(), x.Verbs, x.Reason, x.Test)
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
	handOn := func(r row, verb string) error {
		rule := rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: []string{verb}}
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "hands-dev", Name: "mine"}, Rules: []rbacv1.PolicyRule{rule}}
		return client.NewDryRunClient(c).Create(t.Context(), role)
	}
	rows := 0
	for _, r := range readTable(t) {
		if r.Account != names.Deployer {
			continue
		}
		rows++
		for _, v := range r.all() {
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
	admin := readAll(t)
	for where, p := range admin {
		for _, b := range p.bindings {
			for _, s := range b.subjects {
				if b.role == "ClusterRole cluster-admin" && (s.Kind != "Group" || s.Name != "system:masters") {
					t.Errorf("%s: %s binds %s %s/%s to cluster-admin", where, b.name, s.Kind, s.Namespace, s.Name)
				}
				if s.Kind == rbacv1.ServiceAccountKind && s.Namespace != "kube-system" && p.unlimited[b.role] {
					t.Errorf("%s: %s lets account %s/%s do everything", where, b.name, s.Namespace, s.Name)
				}
			}
		}
	}
	counts := map[string]int{}
	for _, q := range requests(t, suite.Plane.AuditLog()) {
		if q.allowedBy() == "ClusterRole cluster-admin" {
			t.Errorf("%s used cluster-admin: %s %s", q.User.Username, q.Verb, q.RequestURI)
		}
		if namespace, account := q.account(); namespace == "crossplane-system" {
			counts[account+" "+q.Verb+" "+q.ObjectRef.APIGroup+"/"+q.resource()]++
		}
	}
	if len(counts) == 0 {
		t.Error("Crossplane asked for nothing, so this shows nothing")
	}
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%5d %s", counts[k], k)
	}
}

// planePower is who has which role on a plane.
type planePower struct {
	bindings  []planeBinding
	unlimited map[string]bool // roles with all verbs on everything
}

type planeBinding struct {
	name, role string
	subjects   []rbacv1.Subject
}

func readAll(t *testing.T) map[string]planePower {
	t.Helper()
	edge, err := harness.Client(suite.Edge.Config())
	if err != nil {
		t.Fatal(err)
	}
	return map[string]planePower{"control plane": powerOn(t, suite.Admin), "edge": powerOn(t, edge)}
}

func powerOn(t *testing.T, c client.Client) planePower {
	t.Helper()
	p := planePower{unlimited: map[string]bool{}}
	crbs, rbs, crs := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}
	for _, l := range []client.ObjectList{crbs, rbs, crs} {
		if err := c.List(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range crbs.Items {
		p.bindings = append(p.bindings, planeBinding{b.Name, b.RoleRef.Kind + " " + b.RoleRef.Name, b.Subjects})
	}
	for _, b := range rbs.Items {
		p.bindings = append(p.bindings, planeBinding{b.Namespace + "/" + b.Name, b.RoleRef.Kind + " " + b.RoleRef.Name, b.Subjects})
	}
	for _, r := range crs.Items {
		for _, rule := range r.Rules {
			if slices.Contains(rule.Verbs, "*") && slices.Contains(rule.Resources, "*") && slices.Contains(rule.APIGroups, "*") {
				p.unlimited["ClusterRole "+r.Name] = true
			}
		}
	}
	if len(p.bindings) < 20 || !p.unlimited["ClusterRole cluster-admin"] {
		t.Errorf("%d bindings were found, so this shows nothing", len(p.bindings))
	}
	return p
}
