//go:build long

package upgrade

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// TestUninstallAsDocumented comes last, as its file's name has it: it does what docs/install.md says, with tenants of both policies
// that have environments and a pool, and nothing of ours is left. What is deleted before what uses it says what it waits for.
func TestUninstallAsDocumented(t *testing.T) {
	install(t, published(t))
	kept, gone := harness.Tenant("kept", steading.TenantSpec{DeletionPolicy: steading.DeletionRetain}), harness.Tenant("gone", steading.TenantSpec{DeletionPolicy: steading.DeletionDelete})
	for _, tenant := range []*steading.Tenant{kept, gone} {
		create(t, tenant)
		harness.Eventually(t, "tenant "+tenant.Name+" is ready", func(ctx context.Context) error {
			return phaseIs(ctx, tenant, steading.TenantReady)
		})
		e := harness.Environment(tenant.Name, "dev")
		create(t, e)
		suite.WaitFor(t, e, "ready", harness.Ready)
	}
	create(t, pool("kept"))

	reader := harness.Reader{Top: filepath.Join("..", ".."), Kubectl: suite.Kubectl(), Kubeconfig: suite.Plane.Kubeconfig()}
	commands := harness.Documented(t, filepath.Join(reader.Top, "docs", "install.md"), "### Uninstalling")
	commands = slices.DeleteFunc(commands, func(c string) bool { return strings.Contains(c, " -k ") })

	for _, c := range commands {
		if strings.Contains(c, "delete clusterproviderconfigs") || strings.Contains(c, "delete tenants") {
			reader.Run(t, c+" --wait=false")
		}
	}
	harness.Eventually(t, "a tenant that is to be kept says what it waits for", func(ctx context.Context) error {
		if err := phaseIs(ctx, kept, steading.TenantDeletionBlocked); err != nil {
			return err
		}
		return says(kept.Status.GetCondition(steading.ConditionDeletionBlocked), "Environment dev")
	})
	harness.Eventually(t, "a config that is in use says so", func(ctx context.Context) error {
		config := &runtimev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig}}
		if err := suite.Reload(ctx, config); err != nil {
			return err
		}
		return says(config.GetCondition("Terminating"), "until the managed resources that name it are gone")
	})

	reader.Run(t, commands...)
	harness.WantNothingOfOurs(t, suite.Plane.Config(), "kept-dev", "gone-dev")
	volumes := &corev1.PersistentVolumeList{}
	if err := suite.Admin.List(t.Context(), volumes); err != nil || len(volumes.Items) > 0 {
		t.Errorf("%d volumes are left, %v", len(volumes.Items), err)
	}
}

// create an object that nobody removes but the test itself.
func create(t *testing.T, o client.Object) {
	t.Helper()
	if err := suite.Admin.Create(t.Context(), o); err != nil {
		t.Fatalf("cannot create %T %s: %v", o, o.GetName(), err)
	}
}

func phaseIs(ctx context.Context, tenant *steading.Tenant, want steading.TenantPhase) error {
	if err := suite.Reload(ctx, tenant); err != nil {
		return err
	}
	if tenant.Status.Phase != want {
		return fmt.Errorf("phase %s, conditions %+v", tenant.Status.Phase, tenant.Status.Conditions)
	}
	return nil
}

// says is an error unless a condition's message has the word.
func says(c xpv2.Condition, word string) error {
	if !strings.Contains(c.Message, word) {
		return fmt.Errorf("the condition is %+v", c)
	}
	return nil
}
