package power

import (
	"fmt"
	"slices"
	"testing"

	"github.com/steading-dev/steading/apis/names"
)

// Used are the verbs that were used, by row.
type Used map[string]map[string]bool

// Add a use.
func (u Used) Add(r Row, verb string) {
	if u[r.ID()] == nil {
		u[r.ID()] = map[string]bool{}
	}
	u[r.ID()][verb] = true
}

// Judge the requests of our accounts, and of the deployers of namespaces that are ours to judge: each has to be within a row. It
// returns how many there are.
func (u Used) Judge(t *testing.T, table []Row, accounts []string, ours func(namespace string) bool, all []Request) int {
	t.Helper()
	judged, beyond := 0, map[string]int{}
	for _, q := range all {
		namespace, account := q.Account()
		if !slices.Contains(accounts, account) && (account != names.Deployer || !ours(namespace)) {
			continue
		}
		judged++
		within, role := false, q.AllowedBy()
		for _, r := range table {
			if r.Account != account || !r.Covers(q) {
				continue
			}
			// The API server names the first role that allows it. The others would do as well: of a package's account some are
			// Crossplane's.
			holds := r.Role == role || r.Holds(q.ObjectRef.Namespace)
			// The API server may know of a binding a moment after the provider has made it, and forbid what it gives until then.
			within = within || holds || role == ""
			if holds {
				u.Add(r, q.Verb)
			}
		}
		if !within && !slices.Contains(anybody, role) {
			beyond[fmt.Sprintf("%s: %s %s %s %s/%s: %s", account, q.Verb, q.ObjectRef.APIGroup, q.Kind(), q.ObjectRef.Namespace, q.ObjectRef.Name, q.Annotations["authorization.k8s.io/reason"])]++
		}
	}
	for what, n := range beyond {
		t.Errorf("beyond the table, %d times: %s", n, what)
	}
	return judged
}

// Want every verb of the table to have been used, but for the rare ones.
func (u Used) Want(t *testing.T, table []Row) {
	t.Helper()
	for _, r := range table {
		for _, v := range r.Verbs {
			if !u[r.ID()][v] {
				t.Errorf("not used: %s: %s", r.ID(), v)
			}
		}
	}
}
