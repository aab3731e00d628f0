package acceptance

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
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
	harness.PushChart(t, suite.Registry.Host()+"/steading-dev/components/"+name, name, version, template)
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

// waitTold waits until a component's release has come out as these values.
func waitTold(t *testing.T, namespace, release, key, want string) {
	t.Helper()
	harness.Eventually(t, release+" is told "+want, func(ctx context.Context) error {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: release}}
		if err := suite.Reload(ctx, c); err != nil {
			return err
		}
		if c.Data[key] != want {
			return fmt.Errorf("it is told %v", c.Data)
		}
		return nil
	})
}

// TestComponent: a component comes up beside the runtime, with the claim's values over those that it refers to, in order. A
// change of what it refers to reaches it at once, and what is missing or broken is said and leaves what runs.
func TestComponent(t *testing.T) {
	t.Parallel()
	pushComponent(t, "plain", "1.0.0", componentTemplate)
	suite.NewTenant(t, "comp", steading.TenantSpec{})
	low := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-comp", Name: "low"}, Data: map[string]string{"values.yaml": "told: low\nlevel: low\n"}}
	high := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-comp", Name: "high"}, StringData: map[string]string{"more": "told: high\n"}}
	suite.Create(t, low, high)
	e := harness.Environment("comp", "dev")
	e.Spec.Components = []steading.Component{componentOf("db", "plain", "1.0.0", `{"tag": "2"}`,
		steading.ValuesFrom{Kind: "ConfigMap", Name: "low"}, steading.ValuesFrom{Kind: "Secret", Name: "high", Key: "more"})}
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	uid := suite.CompositeUID(t, "comp", "dev")
	if s := stateOf(e, "db"); s.State != steading.ComponentRunning || s.Version != "1.0.0" || !strings.HasSuffix(s.Chart, "/steading-dev/components/plain") {
		t.Errorf("component %+v", s)
	}
	if status, reason, _ := harness.Condition(e, "ComponentsDeployed"); status != "True" || reason != "Deployed" {
		t.Errorf("ComponentsDeployed is %s, %s", status, reason)
	}
	if have := told(t, "comp-dev", "comp-db"); have["told"] != "high" || have["level"] != "low" {
		t.Errorf("told %v", have)
	}
	if image := deploymentNamed(t, "comp-dev", "comp-db").Spec.Template.Spec.Containers[0].Image; image != "example.com/component:2" {
		t.Errorf("image %s", image)
	}

	harness.Change(t, &suite, high, func(s *corev1.Secret) { s.Data["more"] = []byte("told: higher\n") })
	waitTold(t, "comp-dev", "comp-db", "told", "higher")
	harness.Change(t, &suite, low, func(c *corev1.ConfigMap) { c.Data["values.yaml"] = "level: lower" })
	waitTold(t, "comp-dev", "comp-db", "level", "lower")

	harness.Change(t, &suite, low, func(c *corev1.ConfigMap) { c.Data["values.yaml"] = "- no table" })
	wantUnusable(t, e, "key values.yaml of ConfigMap low is not a YAML table of values")
	suite.Delete(t, high)
	harness.Change(t, &suite, low, func(c *corev1.ConfigMap) { c.Data["values.yaml"] = "level: lowest" })
	wantUnusable(t, e, "there is no Secret high in namespace tenant-comp")
	if have := told(t, "comp-dev", "comp-db"); have["told"] != "higher" || have["level"] != "lower" {
		t.Errorf("what ran was touched: told %v", have)
	}
	suite.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-comp", Name: "high"}, StringData: map[string]string{"more": "told: again\n"}})
	suite.WaitFor(t, e, "ready again", func(e *steading.Environment) bool {
		return harness.Ready(e) && stateOf(e, "db").State == steading.ComponentRunning
	})
	if have := told(t, "comp-dev", "comp-db"); have["told"] != "again" || have["level"] != "lowest" {
		t.Errorf("told %v", have)
	}

	suite.Delete(t, e)
	suite.WantGone(t, e)
	harness.WantNothingOwned(t, suite.Plane.Config(), uid)
	suite.WantUsage(t, uid, runtimev1.TransitionProvisioned, runtimev1.TransitionDeleted)
}

// wantUnusable waits until the environment says why its component's values cannot be used, while both go on serving.
func wantUnusable(t *testing.T, e *steading.Environment, says string) {
	t.Helper()
	suite.WaitFor(t, e, "values unusable: "+says, func(e *steading.Environment) bool {
		status, reason, message := harness.Condition(e, "ComponentsDeployed")
		return status == "False" && reason == string(steading.ReasonValuesUnusable) && strings.Contains(message, "component db: "+says) &&
			e.Status.Phase == steading.EnvironmentRunning && stateOf(e, "db").State == steading.ComponentRolledBack
	})
}

func deploymentNamed(t *testing.T, namespace, name string) *appsv1.Deployment {
	t.Helper()
	return harness.Get(t, &suite, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

// TestComponentsStopAndStart with their environment, are removed without it, and are no usage of their own.
func TestComponentsStopAndStart(t *testing.T) {
	t.Parallel()
	pushComponent(t, "power", "1.0.0", componentTemplate)
	suite.NewTenant(t, "compower", steading.TenantSpec{})
	e := harness.Environment("compower", "dev")
	e.Spec.Components = []steading.Component{componentOf("one", "power", "1.0.0", ""), componentOf("two", "power", "1.0.0", "")}
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	uid := suite.CompositeUID(t, "compower", "dev")

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.State = steading.StateStopped })
	suite.WaitFor(t, e, "stopped", func(e *steading.Environment) bool {
		return harness.Ready(e) && e.Status.Power == steading.PowerStopped && stateOf(e, "one").State == steading.ComponentStopped
	})
	if d, j := deploymentNamed(t, "compower-dev", "compower-one"), cronJob(t, "compower-dev", "compower-one"); *d.Spec.Replicas != 0 || !*j.Spec.Suspend {
		t.Errorf("stopped with %d replicas, suspended %t", *d.Spec.Replicas, *j.Spec.Suspend)
	}
	if pods := podsIn(t, "compower-dev"); len(pods) != 0 {
		t.Errorf("a stopped environment has %d pods", len(pods))
	}
	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.State = steading.StateRunning })
	suite.WaitFor(t, e, "started", func(e *steading.Environment) bool {
		return harness.Ready(e) && e.Status.Power == steading.PowerRunning && stateOf(e, "one").State == steading.ComponentRunning
	})
	if d, j := deploymentNamed(t, "compower-dev", "compower-one"), cronJob(t, "compower-dev", "compower-one"); *d.Spec.Replicas != 1 || (j.Spec.Suspend != nil && *j.Spec.Suspend) {
		t.Errorf("started with %d replicas, suspended %v", *d.Spec.Replicas, j.Spec.Suspend)
	}

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Components = e.Spec.Components[1:] })
	suite.WaitFor(t, e, "ready without it", func(e *steading.Environment) bool {
		return harness.Ready(e) && len(e.Status.Components) == 1 && stateOf(e, "two").State == steading.ComponentRunning
	})
	suite.WantGone(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "compower-dev", Name: "compower-one"}})
	suite.WantGone(t, &runtimev1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.Component("compower", "dev", "one")}})
	wantReadyPod(t, "compower-dev")
	suite.WantUsage(t, uid, runtimev1.TransitionProvisioned, runtimev1.TransitionStopped, runtimev1.TransitionStarted)
}

func cronJob(t *testing.T, namespace, name string) *batchv1.CronJob {
	t.Helper()
	return harness.Get(t, &suite, &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

// TestComponentsRefused: what is not there, not allowed, or does not fit is refused with what to do, and leaves what runs.
func TestComponentsRefused(t *testing.T) {
	t.Parallel()
	pushComponent(t, "known", "1.0.0", componentTemplate)
	harness.PushChart(t, suite.Registry.Host()+"/elsewhere/secretly", "secretly", "1.0.0", componentTemplate)
	suite.NewTenant(t, "comprefused", steading.TenantSpec{})
	e := harness.Environment("comprefused", "dev")
	e.Spec.Components = []steading.Component{componentOf("db", "known", "1.0.0", "")}
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)

	in := suite.Registry.Host() + "/steading-dev/components/"
	for _, tc := range []struct {
		asks   steading.Component
		reason string
		says   string
	}{
		{componentOf("db", "unknown", "1.0.0", ""), "ComponentRefused", "component db: chart unknown version 1.0.0 is in none of the repositories that the operator allows (" + in + "unknown)"},
		{componentOf("db", "known", "9.9.9", ""), "ComponentRefused", "component db: chart known version 9.9.9 is in none of the repositories that the operator allows (" + in + "known)"},
		{componentOf("db", "secretly", "1.0.0", ""), "ComponentRefused", "component db: chart secretly version 1.0.0 is in none of"},
		{componentOf("db", "known", "1.0.0", `{"cpu": "6"}`), "BelowFloor", "cpu 8 is below the 10050m that the runtime (4) and component db (6050m) need, 2050m short: raise spec.size.cpu"},
	} {
		harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Components = []steading.Component{tc.asks} })
		suite.WaitFor(t, e, "refused: "+tc.says, func(e *steading.Environment) bool {
			status, reason, message := harness.Condition(e, "Admitted")
			return status == "False" && reason == tc.reason && strings.Contains(message, tc.says) && e.Status.Phase == steading.EnvironmentRunning
		})
		if s := stateOf(e, "db"); s.State != steading.ComponentRunning || !strings.HasSuffix(s.Chart, "/known") {
			t.Errorf("what runs was touched: %+v", s)
		}
	}
	harness.Change(t, &suite, e, func(e *steading.Environment) {
		e.Spec.State, e.Spec.Components = steading.StatePlanned, []steading.Component{componentOf("new", "known", "1.0.0", "")}
	})
	suite.WaitFor(t, e, "planned", func(e *steading.Environment) bool {
		plan := strings.Join(e.Status.Plan, "\n")
		return strings.Contains(plan, "deploy component new as comprefused-new from chart "+in+"known 1.0.0") && strings.Contains(plan, "uninstall component db")
	})
	harness.Change(t, &suite, e, func(e *steading.Environment) {
		e.Spec.State, e.Spec.Components = steading.StateRunning, []steading.Component{componentOf("db", "known", "1.0.0", "")}
	})
	suite.WaitFor(t, e, "ready as it was", func(e *steading.Environment) bool {
		return harness.Ready(e) && stateOf(e, "db").State == steading.ComponentRunning
	})
}

// TestComponentUpgradeRollsBack: a version that the cluster does not take is undone, and the one before serves.
func TestComponentUpgradeRollsBack(t *testing.T) {
	t.Parallel()
	pushComponent(t, "upgraded", "1.0.0", componentTemplate)
	pushComponent(t, "upgraded", "1.1.0", strings.Replace(componentTemplate, `"nothing"`, `"better"`, 1)+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n")
	pushComponent(t, "upgraded", "1.2.0", strings.Replace(componentTemplate, `"nothing"`, `"best"`, 1))
	suite.NewTenant(t, "compup", steading.TenantSpec{})
	e := harness.Environment("compup", "dev")
	e.Spec.Components = []steading.Component{componentOf("db", "upgraded", "1.0.0", "")}
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)

	to := func(version string) {
		harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Components[0].Version = version })
	}
	to("1.1.0")
	suite.WaitFor(t, e, "rolled back", func(e *steading.Environment) bool {
		status, reason, message := harness.Condition(e, "ComponentsDeployed")
		return status == "False" && reason == string(steading.ReasonRolledBack) && stateOf(e, "db").State == steading.ComponentRolledBack &&
			containsAll(message, []string{"component db: version 1.1.0 failed and was rolled back to version 1.0.0", "Not_A_Name"})
	})
	waitTold(t, "compup-dev", "compup-db", "told", "nothing")
	if s := stateOf(e, "db"); s.Version != "1.0.0" || e.Status.Phase != steading.EnvironmentRunning {
		t.Errorf("phase %s, component %+v", e.Status.Phase, s)
	}
	to("1.2.0")
	suite.WaitFor(t, e, "ready at 1.2.0", func(e *steading.Environment) bool { return harness.Ready(e) && stateOf(e, "db").Version == "1.2.0" })
	waitTold(t, "compup-dev", "compup-db", "told", "best")
}

// TestComponentRollbackLeavesNothing of a version that the cluster took in part: neither what was added to an object that the
// version before has, nor an object that it has not.
func TestComponentRollbackLeavesNothing(t *testing.T) {
	t.Parallel()
	const more = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}-more}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}-more}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}-more}}
    spec: {containers: [{name: more, image: example.com/more:1, resources: {limits: {cpu: 50m, memory: 64Mi}}}]}
`
	pushComponent(t, "halfway", "1.0.0", componentTemplate)
	// The CronJob comes last, and is refused.
	pushComponent(t, "halfway", "1.1.0", strings.NewReplacer(
		"        resources: {limits: {cpu: {{", `        env: [{name: ADDED, value: "1"}]`+"\n        resources: {limits: {cpu: {{",
		"0 0 1 1 *", "no schedule",
	).Replace(componentTemplate)+more)
	suite.NewTenant(t, "comphalf", steading.TenantSpec{})
	e := harness.Environment("comphalf", "dev")
	e.Spec.Components = []steading.Component{componentOf("db", "halfway", "1.0.0", "")}
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Components[0].Version = "1.1.0" })
	suite.WaitFor(t, e, "rolled back", func(e *steading.Environment) bool {
		status, reason, message := harness.Condition(e, "ComponentsDeployed")
		return status == "False" && reason == string(steading.ReasonRolledBack) && stateOf(e, "db").State == steading.ComponentRolledBack &&
			containsAll(message, []string{"component db: version 1.1.0 failed and was rolled back to version 1.0.0", "no schedule"})
	})
	harness.Eventually(t, "the container is as it was", func(ctx context.Context) error {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "comphalf-dev", Name: "comphalf-db"}}
		if err := suite.Reload(ctx, d); err != nil {
			return err
		}
		if env := d.Spec.Template.Spec.Containers[0].Env; len(env) > 0 {
			return fmt.Errorf("the container has %v", env)
		}
		return nil
	})
	suite.WantGone(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "comphalf-dev", Name: "comphalf-db-more"}})
}
