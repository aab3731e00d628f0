package boundary

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// drifted reports whether have differs from want in what we set. What others may add, such as labels of their own, is no
// drift; in what has power, such as the subjects of a binding, anything more is.
func drifted(want, have client.Object) bool {
	if !contains(have.GetLabels(), want.GetLabels()) || !contains(have.GetAnnotations(), want.GetAnnotations()) {
		return true
	}
	switch w := want.(type) {
	case *corev1.Namespace:
		return false
	case *corev1.ResourceQuota:
		h, ok := have.(*corev1.ResourceQuota)
		return !ok || !equality.Semantic.DeepEqual(w.Spec, h.Spec)
	case *corev1.LimitRange:
		h, ok := have.(*corev1.LimitRange)
		return !ok || !equality.Semantic.DeepEqual(w.Spec, h.Spec)
	case *networkingv1.NetworkPolicy:
		h, ok := have.(*networkingv1.NetworkPolicy)
		return !ok || !equality.Semantic.DeepEqual(w.Spec, h.Spec)
	case *corev1.ServiceAccount:
		h, ok := have.(*corev1.ServiceAccount)
		return !ok || !equality.Semantic.DeepEqual(w.AutomountServiceAccountToken, h.AutomountServiceAccountToken)
	case *rbacv1.RoleBinding:
		h, ok := have.(*rbacv1.RoleBinding)
		return !ok || !equality.Semantic.DeepEqual(w.RoleRef, h.RoleRef) || !equality.Semantic.DeepEqual(w.Subjects, h.Subjects)
	case *corev1.Secret:
		h, ok := have.(*corev1.Secret)
		return !ok || w.Type != h.Type || !equality.Semantic.DeepEqual(w.Data, h.Data)
	default:
		return true
	}
}

// immutable reports whether have can become want only by being made anew.
func immutable(want, have client.Object) bool {
	switch w := want.(type) {
	case *rbacv1.RoleBinding:
		h, ok := have.(*rbacv1.RoleBinding)
		return ok && h.RoleRef != w.RoleRef
	case *corev1.Secret:
		h, ok := have.(*corev1.Secret)
		return ok && h.Type != w.Type
	default:
		return false
	}
}

func contains(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}
