package acceptance

import (
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/registry"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// component of the tests: what it is told ends up in a ConfigMap, and a pod runs beside it.
const componentTemplate = `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {told: {{ .Values.told | default "nothing" | quote }}, level: {{ .Values.level | default "none" | quote }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
      - name: component
        image: example.com/component:{{ .Values.tag | default "1" }}
        resources: {limits: {cpu: {{ .Values.cpu | default "100m" | quote }}, memory: 128Mi}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: {{ .Release.Name }}}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: job, image: example.com/job:1, resources: {limits: {cpu: 50m, memory: 64Mi}}}]}}}}
`

// pushComponent publishes a chart where the operator allows components to come from.
func pushComponent(t *testing.T, name, version, template string) {
	t.Helper()
	pushTo(t, suite.Registry.Host()+"/steading-dev/components/"+name, name, version, template)
}

func pushTo(t *testing.T, repository, name, version, template string) {
	t.Helper()
	path, err := chartutil.Save(&chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, Version: version},
		Templates: []*chart.File{{Name: "templates/all.yaml", Data: []byte(template)}},
	}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tgz, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.NewClient(registry.ClientOptPlainHTTP())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Push(tgz, repository+":"+version); err != nil {
		t.Fatal(err)
	}
}

func componentOf(name, chart, version, values string, from ...steading.ValuesFrom) steading.Component {
	c := steading.Component{Name: name, Chart: chart, Version: version, ValuesFrom: from}
	if values != "" {
		c.Values = &apiextensionsv1.JSON{Raw: []byte(values)}
	}
	return c
}

// told is what a component's values came out as.
func told(t *testing.T, namespace, release string) map[string]string {
	t.Helper()
	return harness.Get(t, &suite, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: release}}).Data
}

// stateOf a component of an environment.
func stateOf(e *steading.Environment, name string) steading.ComponentStatus {
	for _, c := range e.Status.Components {
		if c.Name == name {
			return c
		}
	}
	return steading.ComponentStatus{}
}

// TestComponent: a component comes up beside the runtime, with the claim's values over those that it refers to.
func TestComponent(t *testing.T) {
	t.Parallel()
	pushComponent(t, "plain", "1.0.0", componentTemplate)
	suite.NewTenant(t, "comp", steading.TenantSpec{})
	suite.Create(t,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-comp", Name: "low"}, Data: map[string]string{"values.yaml": "told: low\nlevel: low\n"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-comp", Name: "high"}, StringData: map[string]string{"more": "told: high\n"}},
	)
	e := harness.Environment("comp", "dev")
	e.Spec.Components = []steading.Component{componentOf("db", "plain", "1.0.0", "",
		steading.ValuesFrom{Kind: "ConfigMap", Name: "low"}, steading.ValuesFrom{Kind: "Secret", Name: "high", Key: "more"})}
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	if s := stateOf(e, "db"); s.State != steading.ComponentRunning || s.Version != "1.0.0" || !strings.HasSuffix(s.Chart, "/steading-dev/components/plain") {
		t.Errorf("component %+v", s)
	}
	if status, reason, _ := harness.Condition(e, "ComponentsDeployed"); status != "True" || reason != "Deployed" {
		t.Errorf("ComponentsDeployed is %s, %s", status, reason)
	}
	if have := told(t, "comp-dev", "comp-db"); have["told"] != "high" || have["level"] != "low" {
		t.Errorf("told %v", have)
	}
}
