package kit

import (
	"errors"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

var (
	id    = v1alpha1.Identity{Tenant: "acme", Environment: "dev", UID: "0a1b2c3d-1111-2222-3333-444455556666"}
	other = v1alpha1.Identity{Tenant: "acme", Environment: "dev", UID: "ffffffff-1111-2222-3333-444455556666"}
)

func stamped(i v1alpha1.Identity, edit ...func(*corev1.Namespace)) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-dev", Labels: map[string]string{"mine": "stays"}}}
	Stamp(ns, i)
	for _, e := range edit {
		e(ns)
	}
	return ns
}

func TestOurs(t *testing.T) {
	unlabelled := func(ns *corev1.Namespace) { ns.Labels = nil }
	relabelled := func(ns *corev1.Namespace) { ns.Labels[names.LabelComposite] = string(other.UID) }
	unannotated := func(ns *corev1.Namespace) { ns.Annotations = nil }
	const neither = "so it is neither changed nor deleted: "
	cases := map[string]struct {
		reason string
		obj    *corev1.Namespace
		adopt  string
		want   string
	}{
		"Ours":         {"What carries our identity is ours.", stamped(id), "", ""},
		"Unlabelled":   {"Without labels the annotations tell.", stamped(id, unlabelled), "", ""},
		"Relabelled":   {"Against changed labels they hold.", stamped(id, relabelled), "", ""},
		"Unannotated":  {"Without annotations the labels tell.", stamped(id, unannotated), "", ""},
		"NoIdentity":   {"What carries none is not ours.", stamped(id, unlabelled, unannotated), "", "Namespace acme-dev exists and was not made by Steading, " + neither + "delete or rename it, or delete this claim"},
		"NoneAndLeave": {"And cannot be adopted, since there is no UID that would name it.", stamped(id, unlabelled, unannotated), string(other.UID), "Namespace acme-dev exists and was not made by Steading, " + neither + "delete or rename it, or delete this claim"},
		"Another": {"What carries another is not ours.", stamped(other), "",
			"Namespace acme-dev exists and belongs to another environment acme/dev (composite ffffffff-1111-2222-3333-444455556666, this one is 0a1b2c3d-1111-2222-3333-444455556666), " + neither +
				"to take it over, an operator sets the annotation steading.dev/adopt-from: ffffffff-1111-2222-3333-444455556666 on the claim"},
		"Adopted":      {"Unless the operator lets us take it over.", stamped(other), string(other.UID), ""},
		"OtherLeave":   {"The leave is for one UID.", stamped(other), "something-else", "Namespace acme-dev exists and belongs to another environment acme/dev (composite ffffffff-1111-2222-3333-444455556666, this one is 0a1b2c3d-1111-2222-3333-444455556666), " + neither + "to take it over, an operator sets the annotation steading.dev/adopt-from: ffffffff-1111-2222-3333-444455556666 on the claim"},
		"OtherTenants": {"Nothing of another environment is ever adopted.", stamped(v1alpha1.Identity{Tenant: "globex", Environment: "web", UID: other.UID}), string(other.UID), "Namespace acme-dev exists and belongs to environment globex/web (composite ffffffff-1111-2222-3333-444455556666), " + neither + "delete that one first, or delete this claim"},
		"TenantsOwn":   {"Nor of the tenant as a whole.", stamped(v1alpha1.Identity{Tenant: "acme", UID: other.UID}), string(other.UID), "Namespace acme-dev exists and belongs to tenant acme (composite ffffffff-1111-2222-3333-444455556666), " + neither + "delete that one first, or delete this claim"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Ours(tc.obj, id, tc.adopt)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (err == nil || err.Error() != tc.want || !errors.As(err, new(*NotOursError))):
				t.Errorf("%s: have %v", tc.reason, err)
			}
		})
	}
}

func TestStamp(t *testing.T) {
	ns := stamped(id)
	want := map[string]string{
		"mine": "stays", names.LabelManagedBy: names.ManagedBy,
		names.LabelTenant: "acme", names.LabelEnvironment: "dev", names.LabelComposite: string(id.UID),
	}
	if !maps.Equal(want, ns.Labels) {
		t.Errorf("labels %v", ns.Labels)
	}
	if !Stamped(ns, id) || Stamped(ns, other) {
		t.Error("the stamp is not told apart")
	}
	for _, m := range []map[string]string{ns.Labels, ns.Annotations} {
		for k := range m {
			if k == "mine" {
				continue
			}
			was := m[k]
			delete(m, k)
			if Stamped(ns, id) {
				t.Errorf("without %s it counts as stamped", k)
			}
			m[k] = was
		}
	}
}
