//go:build node

package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// TestStopStartUpgradeDelete: what is asked of an environment happens to its containers, and its volume stays until it goes.
func TestStopStartUpgradeDelete(t *testing.T) {
	suite.NewTenant(t, "life", steading.TenantSpec{})
	e := harness.Environment("life", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	wantTold(t, "life", "dev", "1.4.2")
	uid := suite.CompositeUID(t, "life", "dev")
	volume := volumeOf(t, "life-dev", "life-devops-home")

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.State = steading.StateStopped })
	suite.WaitFor(t, e, "stopped", func(e *steading.Environment) bool { return harness.Ready(e) && e.Status.Power == steading.PowerStopped })
	harness.Eventually(t, "no pod runs", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := suite.Admin.List(ctx, pods, client.InNamespace("life-dev")); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return errors.New(pods.Items[0].Name + " is there")
		}
		return nil
	})

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.State = steading.StateRunning })
	suite.WaitFor(t, e, "started", func(e *steading.Environment) bool { return harness.Ready(e) && e.Status.Power == steading.PowerRunning })
	wantTold(t, "life", "dev", "1.4.2")

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Version = "1.4.3" })
	suite.WaitFor(t, e, "ready at 1.4.3", func(e *steading.Environment) bool { return harness.Ready(e) && e.Status.DeployedVersion == "1.4.3" })
	wantTold(t, "life", "dev", "1.4.3")
	if now := volumeOf(t, "life-dev", "life-devops-home"); now != volume {
		t.Errorf("the volume is %s now, it was %s", now, volume)
	}

	suite.Delete(t, e)
	suite.WantGone(t, e)
	harness.WantNothingOwned(t, suite.Plane.Config(), uid)
	suite.WantUsage(t, uid, runtimev1.TransitionProvisioned, runtimev1.TransitionStopped, runtimev1.TransitionStarted, runtimev1.TransitionProvisioned, runtimev1.TransitionDeleted)
	harness.Eventually(t, "the volume is gone", func(context.Context) error {
		if _, err := os.Stat(volume); err == nil {
			return errors.New(volume + " is there")
		}
		return nil
	})
}

// volumeOf a claim is its folder, as the machine sees it.
func volumeOf(t *testing.T, namespace, claim string) string {
	t.Helper()
	c := harness.Get(t, &suite, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: claim}})
	path := filepath.Join(suite.Plane.Dir(), "node", "volumes", c.Spec.VolumeName)
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		t.Fatalf("claim %s/%s is on volume %q, and that is no folder of the node: %v", namespace, claim, c.Spec.VolumeName, err)
	}
	return path
}
