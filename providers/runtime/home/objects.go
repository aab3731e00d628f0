package home

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// backstop is how many more environments than the tenant's limit the namespace's quota lets in: refusals come from
// admission, with numbers, and environments that are being deleted do not count there.
const backstop = 10

// quotaOfEnvironments counts Environment claims.
const quotaOfEnvironments corev1.ResourceName = "count/environments.steading.dev"

// denyAll names the NetworkPolicy of the tenant's namespace.
const denyAll = "steading-deny-all"

// part is one object that a Home makes beside the namespace.
type part struct {
	want client.Object
	// live is an empty object to read the real one into.
	live client.Object
	// same reports whether what matters of the live object is as wanted.
	same func() bool
	// works says what the API server still has to do before the object, as it was read or applied last, works. Nil:
	// nothing.
	works func() string
}

// missing says what keeps the part from working, or nothing.
func (p part) missing() string {
	if p.works == nil {
		return ""
	}
	return p.works()
}

// partsOf a Home.
func partsOf(h *v1alpha1.Home) []part {
	p := h.Spec.ForProvider
	at := metav1.ObjectMeta{Namespace: p.Namespace}
	parts := []part{
		binding(named(at, names.Owners), rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: names.TenantOwnerRole}, p.Settings.Owners),
		quota(named(at, names.Quota), *p.Settings.Quota.WithDefaults().MaxEnvironments),
		isolation(named(at, denyAll)),
	}
	parts = append(parts, systemPartsOf(h)...)
	for _, part := range parts {
		kit.Stamp(part.want, p.Identity)
	}
	return parts
}

// systemPartsOf are those in steading-system, which go with the Home even if the namespace stays.
func systemPartsOf(h *v1alpha1.Home) []part {
	p := h.Spec.ForProvider
	at := named(metav1.ObjectMeta{Namespace: names.SystemNamespace}, names.TenantReader(p.Identity.Tenant))
	return []part{
		role(at, readTenant(p.Claim.Name)),
		binding(at, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: at.Name}, p.Settings.Owners),
	}
}

func named(m metav1.ObjectMeta, name string) metav1.ObjectMeta {
	m.Name = name
	return m
}

// readTenant: owners read their own Tenant, with what they use of its quota.
func readTenant(claim string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups:     []string{steading.Group},
		Resources:     []string{"tenants", "tenants/status"},
		ResourceNames: []string{claim},
		Verbs:         []string{"get", "list", "watch"},
	}}
}

func role(m metav1.ObjectMeta, rules []rbacv1.PolicyRule) part {
	want := &rbacv1.Role{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "Role"), ObjectMeta: m, Rules: rules}
	live := &rbacv1.Role{}
	return part{want: want, live: live, same: func() bool { return equality.Semantic.DeepEqual(want.Rules, live.Rules) }}
}

func binding(m metav1.ObjectMeta, to rbacv1.RoleRef, owners []steading.Subject) part {
	want := &rbacv1.RoleBinding{
		TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion.String(), "RoleBinding"),
		ObjectMeta: m,
		RoleRef:    to,
	}
	for _, o := range owners {
		want.Subjects = append(want.Subjects, o.RBAC())
	}
	live := &rbacv1.RoleBinding{}
	return part{want: want, live: live, same: func() bool {
		return want.RoleRef == live.RoleRef && equality.Semantic.DeepEqual(want.Subjects, live.Subjects)
	}}
}

func quota(m metav1.ObjectMeta, limit int32) part {
	want := &corev1.ResourceQuota{
		TypeMeta:   typeMeta(corev1.SchemeGroupVersion.String(), "ResourceQuota"),
		ObjectMeta: m,
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			quotaOfEnvironments: *resource.NewQuantity(int64(limit)+backstop, resource.DecimalSI),
		}},
	}
	live := &corev1.ResourceQuota{}
	return part{
		want: want, live: live,
		same: func() bool { return equality.Semantic.DeepEqual(want.Spec, live.Spec) },
		works: func() string {
			if counts(want) || counts(live) {
				return ""
			}
			return "quota " + want.Name + " does not count environments yet; until it does the API server refuses them"
		},
	}
}

// counts reports whether the API server knows how many environments there are. For half a minute after a cluster has
// learned of Environments it does not, and refuses them all.
func counts(q *corev1.ResourceQuota) bool {
	_, known := q.Status.Used[quotaOfEnvironments]
	return known
}

// isolation: nothing runs in a tenant's namespace, and what did would reach nobody.
func isolation(m metav1.ObjectMeta) part {
	want := &networkingv1.NetworkPolicy{
		TypeMeta:   typeMeta(networkingv1.SchemeGroupVersion.String(), "NetworkPolicy"),
		ObjectMeta: m,
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		},
	}
	live := &networkingv1.NetworkPolicy{}
	return part{want: want, live: live, same: func() bool { return equality.Semantic.DeepEqual(want.Spec, live.Spec) }}
}

// podSecurity of a tenant's namespace, where no pod has any business.
var podSecurity = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}

// namespaceOf a Home.
func namespaceOf(h *v1alpha1.Home) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.Spec.ForProvider.Namespace}}
	stampNamespace(ns, h)
	return ns
}

func stampNamespace(ns *corev1.Namespace, h *v1alpha1.Home) {
	kit.Stamp(ns, h.Spec.ForProvider.Identity)
	l := ns.GetLabels()
	for k, v := range podSecurity {
		l[k] = v
	}
	ns.SetLabels(l)
}

// stamped reports whether the namespace carries all that it should.
func stamped(ns *corev1.Namespace, h *v1alpha1.Home) bool {
	for k, v := range podSecurity {
		if ns.Labels[k] != v {
			return false
		}
	}
	return kit.Stamped(ns, h.Spec.ForProvider.Identity)
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}
