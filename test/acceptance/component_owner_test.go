package acceptance

import (
	"fmt"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	helmtime "helm.sh/helm/v3/pkg/time"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// sharedTemplate makes an object whose name is the same for every component.
const sharedTemplate = `apiVersion: v1
kind: ConfigMap
metadata: {name: shared}
data: {of: {{ .Release.Name | quote }}}
`

// TestComponentsOfOneObject: of two components whose charts make an object of one name the first has it. The other is told
// so, however far it had come with its install, and takes nothing of it when it goes.
func TestComponentsOfOneObject(t *testing.T) {
	t.Parallel()
	pushComponent(t, "sharing", "1.0.0", sharedTemplate)
	suite.NewTenant(t, "compshare", steading.TenantSpec{})
	e := harness.Environment("compshare", "dev")
	e.Spec.Components = []steading.Component{componentOf("one", "sharing", "1.0.0", "")}
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	id := runtimev1.Identity{Tenant: "compshare", Environment: "dev", UID: types.UID(suite.CompositeUID(t, "compshare", "dev"))}
	loseRace(t, "compshare-dev", "compshare-two", id)

	harness.Change(t, &suite, e, func(e *steading.Environment) {
		e.Spec.Components = append(e.Spec.Components, componentOf("two", "sharing", "1.0.0", ""))
	})
	suite.WaitFor(t, e, "told whose it is", func(e *steading.Environment) bool {
		s := stateOf(e, "two")
		return s.State == steading.ComponentFailed && strings.Contains(s.Message, `ConfigMap "shared"`) && strings.Contains(s.Message, "compshare-one")
	})
	wantShared(t)
	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Components = e.Spec.Components[:1] })
	suite.WaitFor(t, e, "ready without it", func(e *steading.Environment) bool { return harness.Ready(e) && len(e.Status.Components) == 1 })
	suite.WantGone(t, &runtimev1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.Component("compshare", "dev", "two")}})
	wantShared(t)
}

func wantShared(t *testing.T) {
	t.Helper()
	c := harness.Get(t, &suite, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "compshare-dev", Name: "shared"}})
	if c.Data["of"] != "compshare-one" || c.Annotations["meta.helm.sh/release-name"] != "compshare-one" || c.DeletionTimestamp != nil {
		t.Errorf("the first component's object was touched: %v, %v", c.Data, c.Annotations)
	}
}

// loseRace writes the record that Helm leaves of an install that found nothing of the name before it began, and something
// when it came to make it.
func loseRace(t *testing.T, namespace, release string, id runtimev1.Identity) {
	t.Helper()
	cs, err := kubernetes.NewForConfig(suite.Plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	now := helmtime.Now()
	err = storage.Init(driver.NewSecrets(cs.CoreV1().Secrets(namespace))).Create(&helm.Release{
		Name: release, Namespace: namespace, Version: 1,
		Info:     &helm.Info{Status: helm.StatusFailed, FirstDeployed: now, LastDeployed: now, Description: `configmaps "shared" already exists`},
		Chart:    &helmchart.Chart{Metadata: &helmchart.Metadata{APIVersion: helmchart.APIVersionV2, Name: "sharing", Version: "1.0.0"}},
		Manifest: fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: %s}\ndata: {of: %s}\n", namespace, release),
		Labels: map[string]string{
			names.LabelTenant: id.Tenant, names.LabelEnvironment: id.Environment, names.LabelComposite: string(id.UID),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}
