//go:build node

package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// TestTwoEnvironmentsRun: each in containers of its own that answer through its Service, and leave nothing when they are gone.
func TestTwoEnvironmentsRun(t *testing.T) {
	suite.NewTenant(t, "pair", steading.TenantSpec{})
	all := []*steading.Environment{harness.Environment("pair", "blue"), harness.Environment("pair", "green")}
	for _, e := range all {
		suite.Create(t, e)
	}
	uids := map[string]string{}
	for _, e := range all {
		suite.WaitFor(t, e, "ready", harness.Ready)
		wantContainers(t, e.Status.Namespace)
		wantTold(t, "pair", e.Name, "1.4.2")
		uids[e.Name] = suite.CompositeUID(t, "pair", e.Name)
	}
	for _, e := range all {
		suite.Delete(t, e)
	}
	for _, e := range all {
		suite.WantGone(t, e)
		harness.WantNothingOwned(t, suite.Plane.Config(), uids[e.Name])
		suite.WantUsage(t, uids[e.Name], runtimev1.TransitionProvisioned, runtimev1.TransitionDeleted)
	}
}

// wantContainers expects pods whose containers containerd runs.
func wantContainers(t *testing.T, namespace string) {
	t.Helper()
	pods := &corev1.PodList{}
	if err := suite.Admin.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) == 0 {
		t.Errorf("no pods in namespace %s", namespace)
	}
	for _, p := range pods.Items {
		for _, c := range p.Status.ContainerStatuses {
			if c.State.Running == nil || !c.Ready || len(c.ContainerID) < len("containerd://")+64 {
				t.Errorf("container %s of pod %s: id %q, ready %t, %+v", c.Name, p.Name, c.ContainerID, c.Ready, c.State)
			}
		}
	}
}
