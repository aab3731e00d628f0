package kit

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestApplyTakesOutWhatOthersAdded: a way out beside a policy that has none, and a limit that we do not know.
func TestApplyTakesOutWhatOthersAdded(t *testing.T) {
	at := metav1.ObjectMeta{Namespace: "acme-dev", Name: "rail", Labels: map[string]string{"a": "b"}}
	policy := &networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}, ObjectMeta: at,
		Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}},
	}
	quota := &corev1.ResourceQuota{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"}, ObjectMeta: at,
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("5")}},
	}
	patched := 0
	c := fake.NewClientBuilder().WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			patched++
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	apply := func() {
		t.Helper()
		for _, obj := range []client.Object{policy, quota} {
			if err := Apply(t.Context(), c, obj, "us"); err != nil {
				t.Fatal(err)
			}
		}
	}
	apply()
	apply()
	if patched > 0 {
		t.Errorf("%d patches of what nobody changed", patched)
	}

	havePolicy, haveQuota := &networkingv1.NetworkPolicy{}, &corev1.ResourceQuota{}
	read := func() {
		t.Helper()
		for _, obj := range []client.Object{havePolicy, haveQuota} {
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "acme-dev", Name: "rail"}, obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	read()
	havePolicy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	haveQuota.Spec.Hard[corev1.ResourceSecrets] = resource.MustParse("0")
	haveQuota.Labels["theirs"] = "too"
	for _, obj := range []client.Object{havePolicy, haveQuota} {
		if err := c.Update(t.Context(), obj, client.FieldOwner("stranger")); err != nil {
			t.Fatal(err)
		}
	}
	apply()
	havePolicy, haveQuota = &networkingv1.NetworkPolicy{}, &corev1.ResourceQuota{}
	read()
	if diff := cmp.Diff(policy.Spec, havePolicy.Spec); diff != "" {
		t.Errorf("policy: -want +have\n%s", diff)
	}
	if diff := cmp.Diff(quota.Spec, haveQuota.Spec); diff != "" {
		t.Errorf("quota: -want +have\n%s", diff)
	}
	if haveQuota.Labels["theirs"] != "too" {
		t.Errorf("labels %v: those of others stay", haveQuota.Labels)
	}
}
