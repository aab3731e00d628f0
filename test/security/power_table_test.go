package security

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/apis/names"
)

// tableFile is the power of every account, as cluster/install gives it.
const tableFile = "testdata/power.yaml"

// tableHead explains the table to whoever reads it.
const tableHead = `# What every ServiceAccount of Steading may do, derived from cluster/install/base by TestLeastPower, which fails when it has
# drifted; write it anew with go test ./test/security -run TestLeastPower -update. The same test lives a tenant's whole life
# and fails for every verb below that was not used, unless it stands under "rare", which is written by hand: why it is not
# used there, and which test does use or need it.
`

// A row of the table.
type row struct {
	// Account that has the power.
	Account string `json:"account"`
	// Role that gives it, and where it is bound.
	Role string `json:"role"`
	In   string `json:"in"`
	// Group, Resource with its subresource, and Names of the objects, if they are said.
	Group    string   `json:"group"`
	Resource string   `json:"resource"`
	Names    []string `json:"names,omitempty"`
	// Verbs that every life uses.
	Verbs []string `json:"verbs,omitempty"`
	// Rare are verbs that not every life uses.
	Rare []rare `json:"rare,omitempty"`
}

// A rare use of power.
type rare struct {
	Verbs  []string `json:"verbs"`
	Reason string   `json:"reason"`
	Test   string   `json:"test"`
}

// id of a row: all but its verbs.
func (r row) id() string {
	return strings.Join([]string{r.Account, r.Role, r.In, r.Group, r.Resource, strings.Join(r.Names, ",")}, " | ")
}

// holds reports whether the row holds in a namespace, as far as its name tells.
func (r row) holds(namespace string) bool {
	_, ofTenant := names.TenantOf(namespace)
	return r.In == everywhere || r.In == "namespace "+namespace || ofTenant && strings.HasPrefix(r.In, ofTenants)
}

// all verbs of a row, rare ones too.
func (r row) all() []string {
	vs := slices.Clone(r.Verbs)
	for _, x := range r.Rare {
		vs = append(vs, x.Verbs...)
	}
	slices.Sort(vs)
	return vs
}

// where roles are bound that are not bound by a manifest, but by the provider.
var boundLater = []struct{ account, role, in string }{
	{names.Deployer, names.EnvironmentDeployerRole, "namespaces of environments"},
	{"provider-runtime", names.ContextCredentialReader, ofTenants + "while they have contexts"},
	{"provider-runtime", names.ComponentValuesReader, ofTenants + "while components have values there"},
}

// installed is what cluster/install gives, as far as it is about power.
type installed struct {
	roles    map[string][]rbacv1.PolicyRule // by kind and name
	clusters []rbacv1.ClusterRole
	bound    []boundRole
	accounts []string
}

// everywhere is where a ClusterRoleBinding holds.
const everywhere = "all namespaces"

// ofTenants is how it begins to be said where roles hold that the provider binds in tenants' namespaces.
const ofTenants = "namespaces of tenants, "

type boundRole struct{ account, role, in string }

// readInstalled reads the manifests.
func readInstalled(t *testing.T) installed {
	t.Helper()
	files, err := filepath.Glob("../../cluster/install/base/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	in := installed{roles: map[string][]rbacv1.PolicyRule{}}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(b), 4096); ; {
			u := &unstructured.Unstructured{}
			err := d.Decode(&u.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			in.add(t, u)
		}
	}
	in.aggregate(t)
	for _, l := range boundLater {
		in.bound = append(in.bound, boundRole{l.account, "ClusterRole " + l.role, l.in})
	}
	return in
}

func (in *installed) add(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	switch u.GetKind() {
	case "ServiceAccount":
		in.accounts = append(in.accounts, as[corev1.ServiceAccount](t, u).Name)
	case "ClusterRole":
		r := as[rbacv1.ClusterRole](t, u)
		in.clusters = append(in.clusters, r)
		in.roles["ClusterRole "+r.Name] = r.Rules
	case "Role":
		r := as[rbacv1.Role](t, u)
		in.roles["Role "+r.Namespace+"/"+r.Name] = r.Rules
	case "ClusterRoleBinding":
		b := as[rbacv1.ClusterRoleBinding](t, u)
		in.bind(b.Subjects, b.RoleRef, "")
	case "RoleBinding":
		b := as[rbacv1.RoleBinding](t, u)
		in.bind(b.Subjects, b.RoleRef, b.Namespace)
	}
}

func (in *installed) bind(subjects []rbacv1.Subject, to rbacv1.RoleRef, namespace string) {
	where := everywhere
	role := to.Kind + " " + to.Name
	if namespace != "" {
		where = "namespace " + namespace
	}
	if to.Kind == "Role" {
		role = "Role " + namespace + "/" + to.Name
	}
	for _, s := range subjects {
		if s.Kind == rbacv1.ServiceAccountKind {
			in.bound = append(in.bound, boundRole{s.Name, role, where})
		}
	}
}

// aggregate does what the controller of aggregated roles does.
func (in *installed) aggregate(t *testing.T) {
	t.Helper()
	for _, r := range in.clusters {
		if r.AggregationRule == nil {
			continue
		}
		for _, s := range r.AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&s)
			if err != nil {
				t.Fatal(err)
			}
			for _, other := range in.clusters {
				if selector.Matches(labels.Set(other.Labels)) {
					in.roles["ClusterRole "+r.Name] = append(in.roles["ClusterRole "+r.Name], other.Rules...)
				}
			}
		}
	}
}

// rows are the rules, one resource a row.
func (in *installed) rows() []row {
	byID := map[string]row{}
	for _, b := range in.bound {
		for _, rule := range in.roles[b.role] {
			for _, g := range rule.APIGroups {
				for _, r := range rule.Resources {
					next := row{Account: b.account, Role: b.role, In: b.in, Group: g, Resource: r, Names: rule.ResourceNames}
					next.Verbs = slices.Concat(byID[next.id()].Verbs, rule.Verbs)
					slices.Sort(next.Verbs)
					next.Verbs = slices.Compact(next.Verbs)
					byID[next.id()] = next
				}
			}
		}
	}
	rows := make([]row, 0, len(byID))
	for _, r := range byID {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.id(), b.id()) })
	return rows
}

// readTable reads what is checked in.
func readTable(t *testing.T) []row {
	t.Helper()
	b, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	if err := yaml.UnmarshalStrict(b, &rows); err != nil {
		t.Fatalf("%s: %v", tableFile, err)
	}
	return rows
}

// updateTable writes rows, with what is checked in of rare uses.
func updateTable(t *testing.T, rows []row) {
	t.Helper()
	before := map[string][]rare{}
	if _, err := os.Stat(tableFile); err == nil {
		for _, r := range readTable(t) {
			before[r.id()] = r.Rare
		}
	}
	for i, r := range rows {
		for _, x := range before[r.id()] {
			x.Verbs = slices.DeleteFunc(slices.Clone(x.Verbs), func(v string) bool { return !slices.Contains(r.Verbs, v) })
			if len(x.Verbs) == 0 {
				continue
			}
			rows[i].Rare = append(rows[i].Rare, x)
			rows[i].Verbs = slices.DeleteFunc(rows[i].Verbs, func(v string) bool { return slices.Contains(x.Verbs, v) })
		}
	}
	b, err := yaml.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tableFile, append([]byte(tableHead), b...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wantTable expects what is checked in to say what cluster/install gives.
func wantTable(t *testing.T, table, given []row) {
	t.Helper()
	want := map[string]string{}
	for _, r := range given {
		want[r.id()] = fmt.Sprint(r.all())
	}
	for _, r := range table {
		if got := fmt.Sprint(r.all()); got != want[r.id()] {
			t.Errorf("%s has drifted; write it anew with -update: %s: verbs %s, cluster/install gives %s", tableFile, r.id(), got, want[r.id()])
		}
		delete(want, r.id())
	}
	for id, verbs := range want {
		t.Errorf("%s has drifted; write it anew with -update: it lacks %s %s", tableFile, id, verbs)
	}
}

// as converts an object to its type.
func as[T any](t *testing.T, u *unstructured.Unstructured) T {
	t.Helper()
	var to T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &to); err != nil {
		t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
	}
	return to
}
