//go:build node

package node

import (
	"context"
	"fmt"
	"testing"

	xppkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/harness"
)

// TestConfigurationAloneInstallsThePlatform: what the suite has applied is the chart and one Configuration. The packages that it
// depends on are healthy, and run as cluster/install says.
func TestConfigurationAloneInstallsThePlatform(t *testing.T) {
	c := suite.Plane.Client()
	packages := map[string]xppkgv1.Package{
		platform.Configuration:           &xppkgv1.Configuration{},
		"steading-dev-function-steading": &xppkgv1.Function{},
		"steading-dev-provider-forgejo":  &xppkgv1.Provider{},
		"steading-dev-provider-runtime":  &xppkgv1.Provider{},
	}
	for name, pkg := range packages {
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, pkg); err != nil {
			t.Fatal(err)
		}
		if healthy := pkg.GetCondition(xppkgv1.TypeHealthy); healthy.Status != corev1.ConditionTrue {
			t.Errorf("package %s: %s %s", name, healthy.Reason, healthy.Message)
		}
	}
	for _, process := range platform.Processes() {
		d := deploymentOf(t, process)
		pod := d.Spec.Template.Spec
		if *d.Spec.Replicas != 2 || d.Status.AvailableReplicas != 2 || pod.ServiceAccountName != process {
			t.Errorf("%s: %d of %d replicas are available, as %s", process, d.Status.AvailableReplicas, *d.Spec.Replicas, pod.ServiceAccountName)
		}
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot {
			t.Errorf("%s may run as root: %+v", process, s)
		}
		if s := pod.Containers[0].SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Errorf("%s can write its root file system: %+v", process, s)
		}
	}
}

// TestPackagesUpgradeUnderLiveEnvironments, and back: the processes are other ones, and the environment's container stays the
// same.
func TestPackagesUpgradeUnderLiveEnvironments(t *testing.T) {
	suite.NewTenant(t, "upgrade", steading.TenantSpec{})
	e := harness.Environment("upgrade", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	before := runtimePod(t, "upgrade-dev").Status.ContainerStatuses[0].ContainerID
	first := suite.Published()
	process := deploymentOf(t, platform.Provider).Name

	second, err := suite.PublishPackages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := suite.InstallVersion(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if now := deploymentOf(t, platform.Provider).Name; now == process {
		t.Errorf("the provider is %s still", now)
	}
	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Labels = map[string]string{"seen-by": "the-second"} })
	suite.WaitFor(t, e, "ready after the upgrade", harness.Ready)

	if err := suite.InstallVersion(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	suite.WaitFor(t, e, "ready after the rollback", harness.Ready)
	wantTold(t, "upgrade", "dev", "1.4.2")
	if now := runtimePod(t, "upgrade-dev").Status.ContainerStatuses[0].ContainerID; now != before {
		t.Errorf("container %s was replaced by %s", before, now)
	}
}

// deploymentOf a process, once there is one only: of a package's former revisions they go.
func deploymentOf(t *testing.T, process string) appsv1.Deployment {
	t.Helper()
	var found []appsv1.Deployment
	harness.Eventually(t, process+" is deployed once", func(ctx context.Context) error {
		all := &appsv1.DeploymentList{}
		if err := suite.Admin.List(ctx, all, client.InNamespace(local.CrossplaneNamespace)); err != nil {
			return err
		}
		found = nil
		for _, d := range all.Items {
			if d.Spec.Template.Labels["app.kubernetes.io/name"] == process {
				found = append(found, d)
			}
		}
		if len(found) != 1 {
			return fmt.Errorf("it is deployed %d times", len(found))
		}
		return nil
	})
	return found[0]
}
