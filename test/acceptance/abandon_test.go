package acceptance

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// TestAContextThatIsGoneForGood: what is on a cluster that does not answer any more is kept, and says so, until an operator
// gives it up.
func TestAContextThatIsGoneForGood(t *testing.T) {
	suite.NewTenant(t, "lost", steading.TenantSpec{})
	c := suite.EdgeContext("lost", "edge", harness.BySecret("edge-admin"))
	suite.Create(t, harness.TokenSecret("lost", "edge-admin", suite.EdgeToken(t, "lost-admin")), c)
	suite.WaitContext(t, c, "running", harness.ContextRunning)
	e := harness.Environment("lost", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	environment, cluster := suite.CompositeUID(t, "lost", "dev"), suite.ContextUID(t, "lost", "edge")

	if err := suite.Edge.Supervisor.Stop("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if err := suite.Edge.Supervisor.Resume(ctx, "kube-apiserver"); err != nil {
			t.Error(err)
		}
		// What was left there, as the operator was told.
		_ = suite.EdgeClient(t).Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lost-dev"}})
	})
	suite.WaitContext(t, c, "unreachable", func(c *steading.Context) bool { return c.Status.Phase == steading.ContextUnreachable })
	suite.Delete(t, e)
	suite.Delete(t, c)
	suite.WaitFor(t, e, "blocked", func(e *steading.Environment) bool { return e.Status.Phase == steading.EnvironmentDeletionBlocked })

	harness.Change(t, &suite, e, func(e *steading.Environment) {
		metav1.SetMetaDataAnnotation(&e.ObjectMeta, names.AnnotationAbandon, environment)
	})
	suite.WantGone(t, e)
	suite.WaitContext(t, c, "blocked", func(c *steading.Context) bool {
		return c.Status.Phase == steading.ContextDeletionBlocked && c.Status.GetCondition(steading.ConditionDeletionBlocked).Reason == steading.ReasonTargetUnreachable
	})
	harness.Change(t, &suite, c, func(c *steading.Context) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, names.AnnotationAbandon, cluster)
	})
	suite.WantGone(t, c)
	harness.WantNothingOwned(t, suite.Plane.Config(), environment)
	harness.WantNothingOwned(t, suite.Plane.Config(), cluster)
}
