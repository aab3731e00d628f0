package power

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/apis/names"
)

// A Row of the table.
type Row struct {
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
	Rare []Rare `json:"rare,omitempty"`
}

// Rare is a use of power that not every life has.
type Rare struct {
	Verbs  []string `json:"verbs"`
	Reason string   `json:"reason"`
	Test   string   `json:"test"`
}

// ID of a row: all but its verbs.
func (r Row) ID() string {
	return strings.Join([]string{r.Account, r.Role, r.In, r.Group, r.Resource, strings.Join(r.Names, ",")}, " | ")
}

// Holds reports whether the row holds in a namespace, as far as its name tells.
func (r Row) Holds(namespace string) bool {
	_, ofTenant := names.TenantOf(namespace)
	return r.In == Everywhere || r.In == "namespace "+namespace || ofTenant && strings.HasPrefix(r.In, OfTenants)
}

// All verbs of a row, rare ones too.
func (r Row) All() []string {
	vs := slices.Clone(r.Verbs)
	for _, x := range r.Rare {
		vs = append(vs, x.Verbs...)
	}
	slices.Sort(vs)
	return vs
}

// Everywhere is where a ClusterRoleBinding holds.
const Everywhere = "all namespaces"

// OfTenants is how it begins to be said where roles hold that the provider binds in tenants' namespaces.
const OfTenants = "namespaces of tenants, "

// ReadTable reads what is checked in.
func ReadTable(t *testing.T, file string) []Row {
	t.Helper()
	b, err := os.ReadFile(file) //nolint:gosec // What the caller names.
	if err != nil {
		t.Fatal(err)
	}
	var rows []Row
	if err := yaml.UnmarshalStrict(b, &rows); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return rows
}
