package power

import (
	"maps"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WantNoAdministrator expects nothing on a cluster to be bound to cluster-admin but the group of those who are anyway, and no
// account outside of Kubernetes itself to have all verbs on everything.
func WantNoAdministrator(t *testing.T, c client.Client) {
	t.Helper()
	p := powerOn(t, c)
	for _, b := range p.bindings {
		for _, s := range b.subjects {
			if b.role == "ClusterRole cluster-admin" && (s.Kind != "Group" || s.Name != "system:masters") {
				t.Errorf("%s binds %s %s/%s to cluster-admin", b.name, s.Kind, s.Namespace, s.Name)
			}
			if s.Kind == rbacv1.ServiceAccountKind && s.Namespace != "kube-system" && p.unlimited[b.role] {
				t.Errorf("%s lets account %s/%s do everything", b.name, s.Namespace, s.Name)
			}
		}
	}
}

// WantNoAdministratorUsed expects no request to have been allowed as the administrator's, and shows what Crossplane asked for.
func WantNoAdministratorUsed(t *testing.T, all []Request) {
	t.Helper()
	counts := map[string]int{}
	for _, q := range all {
		if q.AllowedBy() == "ClusterRole cluster-admin" {
			t.Errorf("%s used cluster-admin: %s %s", q.User.Username, q.Verb, q.RequestURI)
		}
		if namespace, account := q.Account(); namespace == "crossplane-system" {
			counts[account+" "+q.Verb+" "+q.ObjectRef.APIGroup+"/"+q.Kind()]++
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
