package crossplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/harness"
)

// TestOlderDefinitionHolds function and provider under a running environment, which goes on by itself when the definition is
// right again.
func TestOlderDefinitionHolds(t *testing.T) {
	suite.NewTenant(t, "older", steading.TenantSpec{})
	e := harness.Environment("older", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	r := &runtimev1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.Environment("older", "dev")}}
	before := harness.Get(t, &suite, r).DeepCopy()

	mend := neglect(t, described(managedDefinitionKind, "releases.runtime.steading.dev"))
	takeOut(t, described(definitionKind, "releases.runtime.steading.dev"), "spec", "forProvider", "docker")
	// A function looks when it starts, and then every five minutes.
	if err := suite.Plane.Supervisor.Kill(platform.Function); err != nil {
		t.Fatal(err)
	}
	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.State = steading.StateStopped })
	const lost = "would lose spec.forProvider.docker: bring package provider-runtime"
	suite.WaitFor(t, e, "held", saysDefinitions("DefinitionsOutdated", "older than function-steading and "+lost))
	harness.Eventually(t, "the Release is held", func(ctx context.Context) error {
		if err := suite.Reload(ctx, r); err != nil {
			return err
		}
		if c := r.GetCondition(steading.ConditionDefinitionsCurrent); c.Reason != steading.ReasonDefinitionsOutdated || !strings.Contains(c.Message, "older than provider-runtime and "+lost) {
			return fmt.Errorf("its condition is %+v", c)
		}
		return nil
	})
	if r.Generation != before.Generation || r.Spec.ForProvider.Power != before.Spec.ForProvider.Power {
		t.Errorf("it was composed all the same: %+v", r.Spec.ForProvider)
	}
	wantReplicas(t, "older", "dev", 1)
	suite.WaitFor(t, e, "running, but not ready for what is asked for now", func(e *steading.Environment) bool {
		return e.Status.Phase == steading.EnvironmentRunning && !harness.Ready(e)
	})
	wantEvent(t, e, "DefinitionsOutdated")

	mend()
	suite.WaitFor(t, e, "stopped", func(e *steading.Environment) bool { return harness.Ready(e) && e.Status.Power == steading.PowerStopped })
	wantReplicas(t, "older", "dev", 0)
	suite.WaitFor(t, e, "said to be current", saysDefinitions("Current", ""))
	if c := harness.Get(t, &suite, r).GetCondition(steading.ConditionDefinitionsCurrent); c.Status != corev1.ConditionTrue {
		t.Errorf("the Release's condition is %+v", c)
	}
}

// TestOlderXRDHolds what is composed by it: claim and composite have lost the same, and that is said once. A field that a claim
// has is refused by Crossplane before any function hears of it; this is one that only the function would write.
func TestOlderXRDHolds(t *testing.T) {
	suite.NewTenant(t, "oldxrd", steading.TenantSpec{})
	e := harness.Environment("oldxrd", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)

	putBack := takeOut(t, described(compositeDefinitionKind, "xenvironments.steading.dev"), "status", "plan")
	harness.Eventually(t, "Crossplane makes the definitions of it", func(ctx context.Context) error {
		for _, name := range []string{"environments.steading.dev", "xenvironments.steading.dev"} {
			d := described(definitionKind, name)
			if err := suite.Admin.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
				return err
			}
			if raw, err := d.MarshalJSON(); err != nil || strings.Contains(string(raw), `"plan":{`) {
				return fmt.Errorf("%s still has it: %w", name, err)
			}
		}
		return nil
	})
	if err := suite.Plane.Supervisor.Kill(platform.Function); err != nil {
		t.Fatal(err)
	}
	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.State = steading.StateStopped })
	suite.WaitFor(t, e, "held", saysDefinitions("DefinitionsOutdated",
		"the definition of XEnvironment and Environment is older than function-steading and would lose status.plan: bring package configuration-steading, or XRD xenvironments.steading.dev"))
	wantReplicas(t, "oldxrd", "dev", 1)

	putBack()
	suite.WaitFor(t, e, "stopped", func(e *steading.Environment) bool { return harness.Ready(e) && e.Status.Power == steading.PowerStopped })
	suite.WaitFor(t, e, "said to be current", saysDefinitions("Current", ""))
}

// TestMissingDefinitionHolds who writes its kind, and nobody else.
func TestMissingDefinitionHolds(t *testing.T) {
	suite.NewTenant(t, "missing", steading.TenantSpec{})
	const name = "usageevents.runtime.steading.dev"
	mend := neglect(t, described(managedDefinitionKind, name))
	usage := described(definitionKind, name)
	suite.Delete(t, usage)
	suite.WantGone(t, usage)
	e := harness.Environment("missing", "dev")
	suite.Create(t, e)
	// Usage events are the provider's alone: the function composes the Placement, whose controller would write them.
	suite.WaitFor(t, e, "held", saysDefinitions("DefinitionsNotReady", "the API server does not serve UsageEvent: bring package provider-runtime"))
	if e.Status.Phase != steading.EnvironmentPending {
		t.Errorf("phase %s", e.Status.Phase)
	}
	mend()
	suite.WaitFor(t, e, "ready", harness.Ready)
	suite.WaitFor(t, e, "said to be current", saysDefinitions("Current", ""))
}

// TestOlderDefinitionHoldsDeletion of a claim, which says so itself: no function runs for it any more.
func TestOlderDefinitionHoldsDeletion(t *testing.T) {
	suite.NewTenant(t, "olddel", steading.TenantSpec{})
	e := harness.Environment("olddel", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)

	const name = "boundaries.runtime.steading.dev"
	mend := neglect(t, described(managedDefinitionKind, name))
	takeOut(t, described(definitionKind, name), "spec", "forProvider", "pullSecretRef")
	b := &runtimev1.Boundary{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.Environment("olddel", "dev")}}
	harness.Eventually(t, "the Boundary is held", func(ctx context.Context) error {
		if err := suite.Reload(ctx, b); err != nil {
			return err
		}
		if c := b.GetCondition(steading.ConditionDefinitionsCurrent); c.Reason != steading.ReasonDefinitionsOutdated {
			return fmt.Errorf("its condition is %+v", c)
		}
		return nil
	})
	suite.Delete(t, e)
	const lost = "the definition of Boundary is older than provider-runtime and would lose spec.forProvider.pullSecretRef: bring package provider-runtime"
	suite.WaitFor(t, e, "held", saysDefinitions("DefinitionsOutdated", lost))
	suite.WaitFor(t, e, "blocked", func(e *steading.Environment) bool {
		status, reason, message := harness.Condition(e, string(steading.ConditionDeletionBlocked))
		return e.Status.Phase == steading.EnvironmentDeletionBlocked && status == "True" && reason == "DefinitionsOutdated" && strings.Contains(message, lost)
	})
	mend()
	suite.WantGone(t, e)
}

// TestOlderDefinitionOfConfigs holds all that their provider does, and the configs say so too.
func TestOlderDefinitionOfConfigs(t *testing.T) {
	suite.NewTenant(t, "oldconf", steading.TenantSpec{})
	mend := neglect(t, revisionOf(t, names.ProviderRuntime))
	putBack := takeOut(t, described(definitionKind, "clusterproviderconfigs.runtime.steading.dev"), "spec", "allowedTargets")
	config := &runtimev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	home := &runtimev1.Home{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.Home("oldconf")}}
	says := func(status corev1.ConditionStatus, message string) {
		t.Helper()
		for _, o := range []interface {
			client.Object
			GetCondition(xpv2.ConditionType) xpv2.Condition
		}{config, home} {
			harness.Eventually(t, fmt.Sprintf("%T says %s", o, status), func(ctx context.Context) error {
				if err := suite.Reload(ctx, o); err != nil {
					return err
				}
				if c := o.GetCondition(steading.ConditionDefinitionsCurrent); c.Status != status || !strings.Contains(c.Message, message) {
					return fmt.Errorf("its condition is %+v", c)
				}
				return nil
			})
		}
	}
	says(corev1.ConditionFalse, "the definition of ClusterProviderConfig is older than provider-runtime and would lose spec.allowedTargets: bring package provider-runtime")
	putBack()
	mend()
	says(corev1.ConditionTrue, "")
}

// revisionOf a provider's package, which makes the definitions of its configs.
func revisionOf(t *testing.T, provider string) *unstructured.Unstructured {
	t.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "ProviderRevisionList"})
	if err := suite.Admin.List(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for _, r := range l.Items {
		if strings.Contains(r.GetName(), provider) {
			return &r
		}
	}
	t.Fatalf("provider %s has no revision", provider)
	return nil
}

// saysDefinitions reports whether an environment has the condition DefinitionsCurrent for a reason, saying something.
func saysDefinitions(reason, message string) func(*steading.Environment) bool {
	return func(e *steading.Environment) bool {
		_, r, m := harness.Condition(e, string(steading.ConditionDefinitionsCurrent))
		return r == reason && strings.Contains(m, message)
	}
}

// Kinds of definitions: what an API server serves, and what Crossplane makes that of.
var (
	definitionKind          = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	managedDefinitionKind   = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Kind: "ManagedResourceDefinition"}
	compositeDefinitionKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinition"}
)

func described(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetName(name)
	return u
}

// neglect has Crossplane leave the definitions that it makes of an object as they are, until the test is over or what is returned
// is called: then it makes them anew.
func neglect(t *testing.T, of *unstructured.Unstructured) (mend func()) {
	t.Helper()
	const paused = "crossplane.io/paused"
	pause := func(ctx context.Context, value any) error {
		patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: %s}}}`, paused, value)
		return suite.Admin.Patch(ctx, described(of.GroupVersionKind(), of.GetName()), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	if err := pause(t.Context(), `"true"`); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "Crossplane leaves "+of.GetName(), func(ctx context.Context) error {
		l := &corev1.EventList{}
		if err := suite.Admin.List(ctx, l); err != nil {
			return err
		}
		for _, e := range l.Items {
			if e.InvolvedObject.Kind == of.GetKind() && e.InvolvedObject.Name == of.GetName() && e.Reason == "ReconciliationPaused" {
				return nil
			}
		}
		return errors.New("it does not say so")
	})
	mend = func() {
		if err := pause(context.Background(), "null"); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(mend)
	return mend
}

// takeOut a field of a definition, and return how to put it back.
func takeOut(t *testing.T, d *unstructured.Unstructured, path ...string) (putBack func()) {
	t.Helper()
	if err := suite.Admin.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(d.Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("%d versions: %v", len(versions), err)
	}
	whole := runtime.DeepCopyJSONValue(versions)
	at := []string{"schema", "openAPIV3Schema"}
	for _, p := range path {
		at = append(at, "properties", p)
	}
	v := versions[0].(map[string]any) //nolint:forcetypeassert // A test.
	if _, ok, _ := unstructured.NestedMap(v, at...); !ok {
		t.Fatalf("%s has no %s", d.GetName(), strings.Join(path, "."))
	}
	unstructured.RemoveNestedField(v, at...)
	write := func(ctx context.Context, versions any) error {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": versions}})
		if err != nil {
			return err
		}
		return suite.Admin.Patch(ctx, d, client.RawPatch(types.MergePatchType, patch))
	}
	if err := write(t.Context(), versions); err != nil {
		t.Fatal(err)
	}
	putBack = func() {
		if err := write(context.Background(), whole); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(putBack)
	return putBack
}

// wantReplicas of an environment's runtime.
func wantReplicas(t *testing.T, tenant, environment string, want int32) {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := suite.Admin.Get(t.Context(), client.ObjectKey{Namespace: names.EnvironmentNamespace(tenant, environment), Name: names.Release(tenant)}, d); err != nil {
		t.Fatal(err)
	}
	if d.Spec.Replicas == nil || *d.Spec.Replicas != want {
		t.Errorf("replicas %v, want %d", d.Spec.Replicas, want)
	}
}

// wantEvent wants an event when it begins, and not one each time: a composite that is composed again before its status is read
// has it said once more.
func wantEvent(t *testing.T, e *steading.Environment, reason xpv2.ConditionReason) {
	t.Helper()
	harness.Eventually(t, "event on "+e.Name, func(ctx context.Context) error {
		l := &corev1.EventList{}
		if err := suite.Admin.List(ctx, l, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		n := 0
		for _, ev := range l.Items {
			if ev.InvolvedObject.Name == e.Name && ev.Reason == string(reason) {
				n += int(max(ev.Count, 1))
			}
		}
		if n < 1 || n > 2 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}
