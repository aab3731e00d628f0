package install

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/cluster/local"
)

// files of base, in the order in which they are applied.
func files(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("base/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return slices.DeleteFunc(found, func(f string) bool { return filepath.Base(f) == "kustomization.yaml" })
}

func read(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := local.ReadObjects(file)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// objectsOf kind T in a file.
func objectsOf[T any](t *testing.T, file, kind string) []T {
	t.Helper()
	var found []T
	for _, u := range read(t, file) {
		if u.GetKind() != kind {
			continue
		}
		var o T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &o, true); err != nil {
			t.Fatalf("%s: %s %s: %v", file, kind, u.GetName(), err)
		}
		found = append(found, o)
	}
	return found
}

// policies by the name of what they refuse.
func policies(t *testing.T) map[string]admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	found := map[string]admissionv1.ValidatingAdmissionPolicy{}
	for _, f := range files(t) {
		for _, p := range objectsOf[admissionv1.ValidatingAdmissionPolicy](t, f, "ValidatingAdmissionPolicy") {
			found[strings.TrimSuffix(p.Name, ".steading.dev")] = p
		}
	}
	return found
}

func TestKustomizationListsEveryFileInOrder(t *testing.T) {
	b, err := os.ReadFile("base/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var k struct{ Resources []string }
	if err := yaml.Unmarshal(b, &k); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, f := range files(t) {
		want = append(want, filepath.Base(f))
	}
	if diff := cmp.Diff(want, k.Resources); diff != "" {
		t.Errorf("resources of base/kustomization.yaml: -want, +got:\n%s", diff)
	}
}

func TestObjectsAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, f := range files(t) {
		for _, o := range read(t, f) {
			id := strings.Join([]string{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()}, " ")
			if other, ok := seen[id]; ok {
				t.Errorf("%s is in %s and in %s", id, other, f)
			}
			seen[id] = f
			if got := o.GetLabels()["app.kubernetes.io/part-of"]; got != "steading" {
				t.Errorf("%s: %s: label app.kubernetes.io/part-of: got %q, want steading", f, id, got)
			}
			if ns := o.GetNamespace(); ns != "" && ns != names.SystemNamespace && ns != names.EdgeNamespace {
				t.Errorf("%s: %s is in namespace %s, want %s, %s or none", f, id, ns, names.SystemNamespace, names.EdgeNamespace)
			}
		}
	}
}

func TestPoliciesAreNamedAfterTheirFilesAndBound(t *testing.T) {
	for _, f := range files(t) {
		what, isPolicy := strings.CutPrefix(strings.TrimSuffix(filepath.Base(f), ".yaml"), "50-")
		if !isPolicy {
			continue
		}
		t.Run(what, func(t *testing.T) {
			ps := objectsOf[admissionv1.ValidatingAdmissionPolicy](t, f, "ValidatingAdmissionPolicy")
			bs := objectsOf[admissionv1.ValidatingAdmissionPolicyBinding](t, f, "ValidatingAdmissionPolicyBinding")
			if len(ps) != 1 || len(bs) != 1 || len(read(t, f)) != 2 {
				t.Fatalf("%s: want one policy and one binding, and nothing else", f)
			}
			p, b := ps[0], bs[0]
			if want := what + ".steading.dev"; p.Name != want || b.Name != want || b.Spec.PolicyName != want {
				t.Errorf("names: policy %s, binding %s of policy %s; want %s thrice", p.Name, b.Name, b.Spec.PolicyName, want)
			}
			if p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy != admissionv1.Fail {
				t.Error("failurePolicy: want Fail")
			}
			if diff := cmp.Diff([]admissionv1.ValidationAction{admissionv1.Deny}, b.Spec.ValidationActions); diff != "" {
				t.Errorf("validationActions: -want, +got:\n%s", diff)
			}
			for i, v := range p.Spec.Validations {
				if v.Message == "" && v.MessageExpression == "" {
					t.Errorf("validation %d has no message", i)
				}
				if v.Reason == nil {
					t.Errorf("validation %d has no reason", i)
				}
			}
		})
	}
}

// TestIdentitiesAreTheSameInEveryPolicy: policies cannot share variables, so that they are kept the same here.
func TestIdentitiesAreTheSameInEveryPolicy(t *testing.T) {
	first := map[string]string{} // variable to expression
	for _, name := range slices.Sorted(maps.Keys(policies(t))) {
		p := policies(t)[name]
		identities := map[string]string{}
		for _, v := range p.Spec.Variables {
			identities[v.Name] = v.Expression
		}
		for _, c := range p.Spec.MatchConditions {
			identities[c.Name] = c.Expression
		}
		for _, who := range []string{"operator", "crossplane", "provider", "forgejo", "controller"} {
			got, ok := identities[who]
			if !ok {
				continue
			}
			if want, ok := first[who]; ok && got != want {
				t.Errorf("%s: who %s is: got %s, elsewhere %s", name, who, got, want)
			}
			first[who] = got
		}
	}
	for who, part := range map[string]string{
		"operator":   "'steading:operators'",
		"provider":   "'system:serviceaccount:" + names.SystemNamespace + ":provider-runtime'",
		"forgejo":    "'system:serviceaccount:" + names.SystemNamespace + ":" + names.ProviderForgejo + "'",
		"crossplane": "'system:serviceaccount:" + local.CrossplaneNamespace + ":crossplane'",
	} {
		if !strings.Contains(first[who], part) {
			t.Errorf("who %s is: got %q, want something with %s", who, first[who], part)
		}
	}
}

// TestProvidersAreNarrowedWhereverTheyWrite: what a provider's ClusterRoles let it write in every namespace, or in those that it
// gives itself rights in, is watched over by policies of its own.
func TestProvidersAreNarrowedWhereverTheyWrite(t *testing.T) {
	cases := map[string]struct {
		roles, policies, exempt []string
		writes                  int
	}{
		// Claims are in namespaces of ours only, by refuse-claims-elsewhere; of its own configs there is one kind; events tell nobody
		// what he may not know.
		"provider-runtime": {
			roles:    []string{"steading:provider-runtime"},
			policies: []string{"refuse-provider-elsewhere", "refuse-provider-foreign-namespaces"},
			exempt: []string{"events", "runtime.steading.dev/clusterproviderconfigs", "runtime.steading.dev/clusterproviderconfigs/status",
				"steading.dev/contexts", "steading.dev/contexts/status", "steading.dev/environments", "steading.dev/environments/status",
				"steading.dev/runnerpools", "steading.dev/tenants/status"},
			writes: 8,
		},
		"provider-forgejo": {
			roles:    []string{"steading:provider-forgejo", "steading:runner-spawner", "steading:runner-token-reader"},
			policies: []string{"refuse-provider-forgejo-elsewhere"},
			exempt:   []string{"events", "forgejo.steading.dev/clusterproviderconfigs", "forgejo.steading.dev/clusterproviderconfigs/status", "steading.dev/runnerpools/status"},
			writes:   7,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			narrowed := map[string]bool{}
			for _, p := range tc.policies {
				for _, r := range policies(t)[p].Spec.MatchConstraints.ResourceRules {
					for id := range grants([]rbacv1.PolicyRule{{APIGroups: r.APIGroups, Resources: r.Resources}}) {
						narrowed[strings.TrimPrefix(id, "/")] = true
					}
				}
			}
			writes := 0
			for _, role := range tc.roles {
				for id, verbs := range grants(clusterRole(t, role).Rules) {
					id = strings.TrimPrefix(id, "/")
					if slices.Contains(tc.exempt, id) || !slices.ContainsFunc(verbs, func(v string) bool { return !slices.Contains([]string{"get", "list", "watch", "bind"}, v) }) {
						continue
					}
					writes++
					if !narrowed[id] {
						t.Errorf("%s lets the provider write %s in any namespace: want a policy that narrows it", role, id)
					}
				}
			}
			if writes < tc.writes {
				t.Errorf("found %d kinds that the provider writes in any namespace, want at least %d: the test looks in the wrong place", writes, tc.writes)
			}
		})
	}
}

// TestEveryManagedResourceIsKept: a kind of managed resource that is added is kept from hands like the others.
func TestEveryManagedResourceIsKept(t *testing.T) {
	crds, err := filepath.Glob("../../package/provider-*/crds/*.yaml")
	if err != nil || len(crds) == 0 {
		t.Fatalf("cannot find CRDs: %v", err)
	}
	for _, f := range crds {
		for _, crd := range objectsOf[apiextensionsv1.CustomResourceDefinition](t, f, "CustomResourceDefinition") {
			if !slices.Contains(crd.Spec.Names.Categories, "managed") {
				continue
			}
			for policy, resources := range map[string][]string{
				"refuse-changing-managed-resources": {crd.Spec.Names.Plural, crd.Spec.Names.Plural + "/status"},
				"refuse-deleting-managed-resources": {crd.Spec.Names.Plural},
			} {
				for _, resource := range resources {
					if !slices.ContainsFunc(policies(t)[policy].Spec.MatchConstraints.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool {
						return slices.Contains(r.APIGroups, crd.Spec.Group) && slices.Contains(r.Resources, resource)
					}) {
						t.Errorf("%s does not match %s.%s", policy, resource, crd.Spec.Group)
					}
				}
			}
		}
	}
}

// TestDeployerMayGiveWhatOwnersHave: the runtime's chart gives the runtime the owners' rights, and nobody can give what he
// does not have.
func TestDeployerMayGiveWhatOwnersHave(t *testing.T) {
	deployer := clusterRole(t, "steading:environment-deployer").Rules
	for id, verbs := range grants(clusterRole(t, "steading:environment-owner").Rules) {
		for _, verb := range verbs {
			if !slices.Contains(grants(deployer)[id], verb) {
				t.Errorf("steading:environment-owner may %s %s, steading:environment-deployer may not", verb, id)
			}
		}
	}
}

func TestNoRoleGivesMoreThanItHas(t *testing.T) {
	for _, f := range files(t) {
		for _, kind := range []string{"ClusterRole", "Role"} {
			for _, role := range objectsOf[rbacv1.ClusterRole](t, f, kind) {
				for id, verbs := range grants(role.Rules) {
					for _, verb := range verbs {
						if slices.Contains([]string{"*", "escalate", "impersonate"}, verb) {
							t.Errorf("%s %s may %s %s", kind, role.Name, verb, id)
						}
						if verb == "bind" && role.Name != "steading:provider-runtime" && role.Name != "steading:provider-forgejo" {
							t.Errorf("%s %s may bind %s", kind, role.Name, id)
						}
					}
				}
				for _, r := range role.Rules {
					if slices.Contains(r.Verbs, "bind") && len(r.ResourceNames) == 0 {
						t.Errorf("%s %s may bind any role, want names", kind, role.Name)
					}
				}
			}
		}
	}
}

func clusterRole(t *testing.T, name string) rbacv1.ClusterRole {
	t.Helper()
	for _, f := range files(t) {
		for _, r := range objectsOf[rbacv1.ClusterRole](t, f, "ClusterRole") {
			if r.Name == name {
				return r
			}
		}
	}
	t.Fatalf("there is no ClusterRole %s", name)
	return rbacv1.ClusterRole{}
}

// grants are the verbs of each group/resource.
func grants(rules []rbacv1.PolicyRule) map[string][]string {
	g := map[string][]string{}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				g[group+"/"+resource] = append(g[group+"/"+resource], r.Verbs...)
			}
		}
	}
	return g
}
