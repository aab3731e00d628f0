package acceptance

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

const statefulTemplate = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: {{ .Release.Name }}}
spec:
  serviceName: {{ .Release.Name }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
      - name: component
        image: example.com/component:1
        resources: {limits: {cpu: {{ .Values.cpu | default "100m" | quote }}, memory: 128Mi}}
`

// TestStatefulSetOverQuota: what a claim's own values need is refused beforehand, but values that it refers to are seen by
// nobody but the chart. What the quota then refuses a StatefulSet is said in its words, and it goes on when they are mended.
func TestStatefulSetOverQuota(t *testing.T) {
	t.Parallel()
	pushComponent(t, "stateful", "1.0.0", statefulTemplate)
	suite.NewTenant(t, "compquota", steading.TenantSpec{})
	values := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-compquota", Name: "size"}, Data: map[string]string{"values.yaml": "cpu: 9"}}
	suite.Create(t, values)
	e := harness.Environment("compquota", "dev")
	e.Spec.Components = []steading.Component{componentOf("db", "stateful", "1.0.0", "", steading.ValuesFrom{Kind: "ConfigMap", Name: "size"})}
	suite.Create(t, e)
	suite.WaitFor(t, e, "refused by the quota", func(e *steading.Environment) bool {
		status, reason, message := harness.Condition(e, "ComponentsDeployed")
		return status == "False" && reason == string(steading.ReasonQuotaExceeded) &&
			containsAll(message, []string{`component db: pods "compquota-db-0" is forbidden: exceeded quota: steading-quota`, "limits.cpu=9"})
	})
	if strings.Contains(e.Status.Message, "StatefulSet") {
		t.Errorf("message %q", e.Status.Message)
	}
	harness.Change(t, &suite, values, func(c *corev1.ConfigMap) { c.Data["values.yaml"] = "cpu: 1" })
	suite.WaitFor(t, e, "ready", func(e *steading.Environment) bool {
		return harness.Ready(e) && stateOf(e, "db").State == steading.ComponentRunning
	})
}
