package names

import (
	"strings"
	"testing"
)

// TestComponentsAndEnvironmentsShareNoName: the Releases of components live beside those of runtimes. Hyphens occur in the
// names of both, so that they cannot keep them apart.
func TestComponentsAndEnvironmentsShareNoName(t *testing.T) {
	parts := []string{"a", "b", "a-b", "b-a", "a-b-a", "db", "dev", "dev-db", "db-dev"}
	owner := map[string]string{}
	claim := func(name, who string) {
		if other, taken := owner[name]; taken {
			t.Errorf("%s is the name of %s and of %s", name, other, who)
		}
		owner[name] = who
	}
	for _, tenant := range []string{"acme", "acmedev"} {
		for _, environment := range parts {
			claim(Environment(tenant, environment), "environment "+tenant+"/"+environment)
			for _, component := range parts {
				claim(Component(tenant, environment, component), "component "+tenant+"/"+environment+"/"+component)
			}
		}
	}
}

// TestLongestNamesFit: what the schemas and policies let be is let be by Kubernetes and Helm.
func TestLongestNamesFit(t *testing.T) {
	tenant, environment, component := strings.Repeat("t", 20), strings.Repeat("e", 42), strings.Repeat("c", 30)
	for what, tc := range map[string]struct {
		name string
		most int
	}{
		"Namespace":    {EnvironmentNamespace(tenant, environment), 63},
		"Release":      {Component(tenant, environment, component), 253},
		"RoleBinding":  {ValuesReader(environment, component), 253},
		"Helm release": {ComponentRelease(tenant, component), 53},
	} {
		if len(tc.name) > tc.most {
			t.Errorf("%s %s has %d characters, %d are allowed", what, tc.name, len(tc.name), tc.most)
		}
	}
}
