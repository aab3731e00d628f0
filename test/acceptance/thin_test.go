package acceptance

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// TestEnvironmentFromClaimToGone is the main job: a tenant and an environment are applied, it runs in a bounded namespace,
// and deleting it leaves nothing behind but the record that it was.
func TestEnvironmentFromClaimToGone(t *testing.T) {
	suite.NewTenant(t, "thin", steading.TenantSpec{Owners: []steading.Subject{{Kind: "Group", Name: "thin-owners"}}})
	e := harness.Environment("thin", "web")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)

	s := e.Status
	if s.Phase != steading.EnvironmentRunning || s.Power != steading.PowerRunning || s.DeployedVersion != "1.4.2" || s.Namespace != "thin-web" {
		t.Errorf("status %+v", s)
	}
	if s.Context == nil || s.Context.Name != "platform" || s.Context.Reason != steading.PlacementPlatformFallback {
		t.Errorf("context %+v", s.Context)
	}
	if s.Image == nil || s.Image.Choice != steading.ImageCanonical {
		t.Errorf("image %+v", s.Image)
	}
	wantReadyPod(t, "thin-web")
	wantBounded(t, "thin-web", e)

	uid := suite.CompositeUID(t, "thin", "web")
	suite.Delete(t, e)
	suite.WantGone(t, e)
	harness.WantNothingOwned(t, suite.Plane.Config(), uid)
	suite.WantUsage(t, uid, runtimev1.TransitionProvisioned, runtimev1.TransitionDeleted)
}

// wantReadyPod expects a pod of the runtime that is ready.
func wantReadyPod(t *testing.T, namespace string) {
	t.Helper()
	pods := &corev1.PodList{}
	if err := suite.Admin.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return
			}
		}
	}
	t.Errorf("no ready pod among %d in namespace %s", len(pods.Items), namespace)
}

// wantBounded expects the namespace to carry the environment's identity and a quota of its caps.
func wantBounded(t *testing.T, namespace string, e *steading.Environment) {
	t.Helper()
	ns := harness.Get(t, &suite, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if ns.Labels[names.LabelTenant] == "" || ns.Labels[names.LabelEnvironment] != e.Name {
		t.Errorf("labels of namespace %s: %v", namespace, ns.Labels)
	}
	q := harness.Get(t, &suite, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.Quota}})
	for name, want := range map[corev1.ResourceName]string{corev1.ResourceLimitsCPU: e.Spec.Size.CPU.String(), corev1.ResourceLimitsMemory: e.Spec.Size.Memory.String(), corev1.ResourceRequestsStorage: e.Spec.Size.Storage.String()} {
		if have := q.Spec.Hard[name]; have.String() != want {
			t.Errorf("quota %s of namespace %s: have %s, want %s", name, namespace, &have, want)
		}
	}
}
