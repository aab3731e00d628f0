package kit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
)

// TestWhatIsCached: what is not ours is not in memory, nor what is of an environment where only tenants' is asked for.
func TestWhatIsCached(t *testing.T) {
	bindings, namespaces := client.Object(&rbacv1.RoleBinding{}), client.Object(&corev1.Namespace{})
	o, err := cacheOptions(ManagerOptions{Outside: []client.Object{bindings}, OfTenants: []client.Object{namespaces}})
	if err != nil {
		t.Fatal(err)
	}
	tenants := labels.Set{names.LabelManagedBy: names.ManagedBy, names.LabelTenant: "acme"}
	cases := map[string]struct {
		of   client.Object
		has  labels.Set
		want bool
	}{
		"Strangers":    {namespaces, labels.Set{names.LabelTenant: "acme"}, false},
		"Tenants":      {namespaces, tenants, true},
		"Environments": {namespaces, labels.Merge(tenants, labels.Set{names.LabelEnvironment: "dev"}), false},
		"Rights":       {bindings, labels.Merge(tenants, labels.Set{names.LabelEnvironment: "dev"}), true},
		"Foreign":      {bindings, labels.Set{names.LabelEnvironment: "dev"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if have := o.ByObject[tc.of].Label.Matches(tc.has); have != tc.want {
				t.Errorf("cached: %t", have)
			}
		})
	}
}
