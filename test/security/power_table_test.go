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
	"github.com/steading-dev/steading/test/power"
)

// tableFile is the power of every account, as cluster/install gives it.
const tableFile = "testdata/power.yaml"

// tableHead explains the table to whoever reads it.
const tableHead = `# What every ServiceAccount of Steading may do, derived from cluster/install/base by TestLeastPower, which fails when it has
# drifted; write it anew with go test ./test/security -run TestLeastPower -update. The same test lives a tenant's whole life
# and fails for every verb below that was not used, unless it stands under "rare", which is written by hand: why it is not
# used there, and which test does use or need it.
`

// where roles are bound that are not bound by a manifest, but by the provider.
var boundLater = []struct{ account, role, in string }{
	{names.Deployer, names.EnvironmentDeployerRole, "namespaces of environments"},
	{"provider-runtime", names.ContextCredentialReader, power.OfTenants + "while they have contexts"},
	{"provider-runtime", names.ComponentValuesReader, power.OfTenants + "while components have values there"},
	{names.ProviderForgejo, names.TokenReaderRole, power.OfTenants + "while they have runner pools"},
	{names.ProviderForgejo, names.RunnerSpawnerRole, "namespaces for runners, while pools name them"},
}

// installed is what cluster/install gives, as far as it is about power.
type installed struct {
	roles    map[string][]rbacv1.PolicyRule // by kind and name
	clusters []rbacv1.ClusterRole
	bound    []boundRole
	accounts []string
}

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
	where := power.Everywhere
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
func (in *installed) rows() []power.Row {
	byID := map[string]power.Row{}
	for _, b := range in.bound {
		for _, rule := range in.roles[b.role] {
			for _, g := range rule.APIGroups {
				for _, r := range rule.Resources {
					next := power.Row{Account: b.account, Role: b.role, In: b.in, Group: g, Resource: r, Names: rule.ResourceNames}
					next.Verbs = slices.Concat(byID[next.ID()].Verbs, rule.Verbs)
					slices.Sort(next.Verbs)
					next.Verbs = slices.Compact(next.Verbs)
					byID[next.ID()] = next
				}
			}
		}
	}
	rows := make([]power.Row, 0, len(byID))
	for _, r := range byID {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b power.Row) int { return cmp.Compare(a.ID(), b.ID()) })
	return rows
}

// updateTable writes rows, with what is checked in of rare uses.
func updateTable(t *testing.T, rows []power.Row) {
	t.Helper()
	before := map[string][]power.Rare{}
	if _, err := os.Stat(tableFile); err == nil {
		for _, r := range power.ReadTable(t, tableFile) {
			before[r.ID()] = r.Rare
		}
	}
	for i, r := range rows {
		for _, x := range before[r.ID()] {
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
func wantTable(t *testing.T, table, given []power.Row) {
	t.Helper()
	want := map[string]string{}
	for _, r := range given {
		want[r.ID()] = fmt.Sprint(r.All())
	}
	for _, r := range table {
		if got := fmt.Sprint(r.All()); got != want[r.ID()] {
			t.Errorf("%s has drifted; write it anew with -update: %s: verbs %s, cluster/install gives %s", tableFile, r.ID(), got, want[r.ID()])
		}
		delete(want, r.ID())
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
