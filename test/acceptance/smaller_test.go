package acceptance

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// TestWhatIsInUseIsNotFree: an environment is made smaller, and a volume claim stays that was made while it was larger. What
// that holds is in nobody else's budget until it is gone, and then at once.
func TestWhatIsInUseIsNotFree(t *testing.T) {
	t.Parallel()
	suite.NewTenant(t, "smaller", steading.TenantSpec{Quota: steading.Quota{Total: steading.MustResources("160", "360Gi", "72Gi")}})
	a := harness.Environment("smaller", "a")
	a.Spec.Size = steading.MustResources("8", "20Gi", "64Gi")
	suite.Create(t, a)
	suite.WaitFor(t, a, "ready", harness.Ready)
	left := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "smaller-a", Name: "left"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("50Gi")}},
		},
	}
	suite.Create(t, left)
	harness.Change(t, &suite, a, func(e *steading.Environment) { e.Spec.Size.Storage = resource.MustParse("4Gi") })

	b := harness.Environment("smaller", "b")
	b.Spec.Size = steading.MustResources("8", "20Gi", "40Gi")
	suite.Create(t, b)
	suite.WaitFor(t, b, "refused what is in use", func(e *steading.Environment) bool {
		status, reason, message := harness.Condition(e, "Admitted")
		return status == "False" && reason == string(steading.ReasonOverTenantTotal) &&
			strings.Contains(message, "storage of tenant smaller would be 92Gi (40Gi for this environment and 52Gi for 1 other, counting 48Gi that is in use still where a size was lowered)")
	})
	suite.Delete(t, left)
	suite.WaitFor(t, b, "ready", harness.Ready)
}
