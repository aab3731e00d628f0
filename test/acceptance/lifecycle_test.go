package acceptance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/test/harness"
)

// TestStopAndStart: a stopped environment is scaled to zero, keeps its volume and its place in the quota, and each change is
// recorded once.
func TestStopAndStart(t *testing.T) {
	t.Parallel()
	x := suite.NewTenant(t, "power", steading.TenantSpec{})
	e := harness.Environment("power", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	uid := suite.CompositeUID(t, "power", "dev")
	wantRevisions(t, "power-dev", 1)
	volume := claimOf(t, "power-dev")

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.State = steading.StateStopped })
	suite.WaitFor(t, e, "stopped", func(e *steading.Environment) bool {
		return harness.Ready(e) && e.Status.Phase == steading.EnvironmentRunning && e.Status.Power == steading.PowerStopped
	})
	if status, reason, _ := harness.Condition(e, "Deployed"); status != "True" || reason != string(steading.ReasonStopped) {
		t.Errorf("Deployed is %s, %s", status, reason)
	}
	if d := deploymentOf(t, "power-dev"); *d.Spec.Replicas != 0 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("a stopped environment has %d replicas and strategy %s", *d.Spec.Replicas, d.Spec.Strategy.Type)
	}
	if pods := podsIn(t, "power-dev"); len(pods) != 0 {
		t.Errorf("a stopped environment has %d pods", len(pods))
	}
	waitTenant(t, x, "with a stopped environment", func(x *steading.Tenant) bool {
		n := x.Status.Environments
		return n != nil && n.Total == 1 && n.Stopped == 1 && n.Running == 0 && x.Status.Usage.CPU.Projected.String() == "8"
	})
	suite.WantUsage(t, uid, runtimev1.TransitionProvisioned, runtimev1.TransitionStopped)

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.State = steading.StateRunning })
	suite.WaitFor(t, e, "started", func(e *steading.Environment) bool {
		return harness.Ready(e) && e.Status.Power == steading.PowerRunning
	})
	wantReadyPod(t, "power-dev")
	suite.WantUsage(t, uid, runtimev1.TransitionProvisioned, runtimev1.TransitionStopped, runtimev1.TransitionStarted)
	if now := claimOf(t, "power-dev"); now != volume {
		t.Error("the volume is another one")
	}
	wantRevisions(t, "power-dev", 3)
	waitTenant(t, x, "with its last usage events", func(x *steading.Tenant) bool {
		var ts []string
		for _, u := range x.Status.RecentUsageEvents {
			ts = append(ts, u.Transition)
		}
		slices.Sort(ts)
		return slices.Equal(ts, []string{"Provisioned", "Started", "Stopped"})
	})
}

// wantRevisions expects Helm to have acted that often, which is once for each change.
func wantRevisions(t *testing.T, namespace string, want int) {
	t.Helper()
	secrets := &corev1.SecretList{}
	if err := suite.Admin.List(t.Context(), secrets, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm"}); err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, s := range secrets.Items {
		have = append(have, fmt.Sprintf("%s %s", s.Labels["version"], s.Labels["status"]))
	}
	var wanted []string
	for i := range want {
		status := "superseded"
		if i == want-1 {
			status = "deployed"
		}
		wanted = append(wanted, fmt.Sprintf("%d %s", i+1, status))
	}
	slices.Sort(have)
	if !slices.Equal(have, wanted) {
		t.Errorf("revisions in namespace %s: have %q, want %q", namespace, have, wanted)
	}
}

// claimOf is the identity of the one volume claim in a namespace.
func claimOf(t *testing.T, namespace string) string {
	t.Helper()
	claims := &corev1.PersistentVolumeClaimList{}
	if err := suite.Admin.List(t.Context(), claims, client.InNamespace(namespace)); err != nil || len(claims.Items) != 1 {
		t.Fatalf("%d volume claims in namespace %s: %v", len(claims.Items), namespace, err)
	}
	return string(claims.Items[0].UID)
}

// deploymentOf is the runtime's, in a namespace that is called after tenant and environment.
func deploymentOf(t *testing.T, namespace string) *appsv1.Deployment {
	t.Helper()
	tenant, _, _ := strings.Cut(namespace, "-")
	return harness.Get(t, &suite, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.Release(tenant)}})
}

// TestVersion: a new version of an environment that runs is rolled out, by one action of Helm's.
func TestVersion(t *testing.T) {
	t.Parallel()
	suite.NewTenant(t, "versions", steading.TenantSpec{})
	e := harness.Environment("versions", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	uid, volume := suite.CompositeUID(t, "versions", "dev"), claimOf(t, "versions-dev")

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Version = "1.4.3" })
	suite.WaitFor(t, e, "at 1.4.3", func(e *steading.Environment) bool {
		return harness.Ready(e) && e.Status.DeployedVersion == "1.4.3" && servesVersion(t, "versions-dev", "1.4.3")
	})
	wantRevisions(t, "versions-dev", 2)
	if now := claimOf(t, "versions-dev"); now != volume {
		t.Error("the volume is another one")
	}
	suite.WantUsage(t, uid, runtimev1.TransitionProvisioned, runtimev1.TransitionProvisioned)
}

// TestSize: a new size of an environment that runs reaches its quota, be it larger or smaller.
func TestSize(t *testing.T) {
	t.Parallel()
	suite.NewTenant(t, "sizes", steading.TenantSpec{})
	for name, size := range map[string]*steading.Resources{"larger": steading.MustResources("16", "24Gi", "60Gi"), "smaller": steading.MustResources("4", "16Gi", "2Gi")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.Environment("sizes", name)
			suite.Create(t, e)
			suite.WaitFor(t, e, "ready", harness.Ready)
			harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Size = size })
			suite.WaitFor(t, e, "of another size", func(e *steading.Environment) bool {
				return harness.Ready(e) && e.Status.Caps != nil && e.Status.Caps.Equal(*size)
			})
			wantBounded(t, "sizes-"+name, e)
			suite.WantUsage(t, suite.CompositeUID(t, "sizes", name), runtimev1.TransitionProvisioned, runtimev1.TransitionProvisioned)
		})
	}
}

// TestSizeRefused keeps what runs, as it runs.
func TestSizeRefused(t *testing.T) {
	t.Parallel()
	suite.NewTenant(t, "keeping", steading.TenantSpec{})
	cases := map[string]struct {
		size   *steading.Resources
		reason any
		part   string
	}{
		"large": {steading.MustResources("17", "24Gi", "60Gi"), steading.ReasonOverEnvironmentCap, "cpu 17 is over the 16 that one environment of tenant keeping may have, 1 too much"},
		"small": {steading.MustResources("4", "15Gi", "60Gi"), steading.ReasonBelowFloor, "memory 15Gi is below the 16Gi that the runtime needs, 1Gi short: raise spec.size.memory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.Environment("keeping", name)
			suite.Create(t, e)
			suite.WaitFor(t, e, "ready", harness.Ready)
			pod := podsIn(t, "keeping-"+name)[0].UID
			harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Size = tc.size })
			suite.WaitFor(t, e, "refused", refused(tc.reason, tc.part))
			if s := e.Status; s.Phase != steading.EnvironmentRunning || s.Caps.CPU.String() != "8" || s.Caps.Memory.String() != "20Gi" || harness.Ready(e) {
				t.Errorf("what was refused a size: %s, caps %+v", harness.Describe(e), s.Caps)
			}
			if pods := podsIn(t, "keeping-"+name); len(pods) != 1 || pods[0].UID != pod || !podReady(pods[0]) {
				t.Error("its pod was touched")
			}
			wantRevisions(t, "keeping-"+name, 1)
			harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Size = steading.MustResources("8", "20Gi", "40Gi") })
			suite.WaitFor(t, e, "as it was", harness.Ready)
			suite.WantUsage(t, suite.CompositeUID(t, "keeping", name), runtimev1.TransitionProvisioned)
		})
	}
}

// TestTypeIsImmutable, which the schema says.
func TestTypeIsImmutable(t *testing.T) {
	t.Parallel()
	suite.NewTenant(t, "types", steading.TenantSpec{})
	e := harness.Environment("types", "laptop")
	e.Spec.Type = steading.TypeLocalAgent
	suite.Create(t, e)
	err := suite.Admin.Patch(t.Context(), e, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"type":"remote-agent"}}`)))
	if !kerrors.IsInvalid(err) || !strings.Contains(err.Error(), "type is immutable; delete the environment and create it anew") {
		t.Errorf("changing the type: %v", err)
	}
}

// TestPlanned says what would happen, by the rules of admission, and composes nothing; on what runs it changes nothing.
func TestPlanned(t *testing.T) {
	t.Parallel()
	suite.NewTenant(t, "plans", steading.TenantSpec{})
	e, no := harness.Environment("plans", "dev"), harness.Environment("plans", "huge")
	e.Spec.State, no.Spec.State = steading.StatePlanned, steading.StatePlanned
	no.Spec.Size = steading.MustResources("8", "20Gi", "80Gi")
	suite.Create(t, e, no)
	suite.WaitFor(t, e, "planned", func(e *steading.Environment) bool { return len(e.Status.Plan) == 5 })
	for i, part := range []string{"platform", "admit as environment 1 of 10 of tenant plans", "cap namespace plans-dev at 8 CPU, 20Gi memory, 40Gi storage", "use 8 CPU", "deploy plans-devops at version 1.4.2 from chart"} {
		if !strings.Contains(e.Status.Plan[i], part) {
			t.Errorf("step %d of the plan is %q, want it to say %q", i+1, e.Status.Plan[i], part)
		}
	}
	if e.Status.Phase != steading.EnvironmentRegistered || e.Status.Namespace != "" || e.Status.Caps != nil {
		t.Errorf("what is planned: %s", harness.Describe(e))
	}
	suite.WaitFor(t, no, "planned to be refused", func(e *steading.Environment) bool {
		return slices.ContainsFunc(e.Status.Plan, func(s string) bool {
			return strings.HasPrefix(s, "refuse (OverEnvironmentCap): storage 80Gi is over the 72Gi")
		})
	})
	for _, name := range []string{"plans-dev", "plans-huge"} {
		if exists(t, &runtimev1.Boundary{}, name) || exists(t, &runtimev1.Release{}, name) {
			t.Errorf("%s is planned, and composes", name)
		}
	}
	if l := (&runtimev1.Ledger{}); exists(t, l, "plans") && len(l.Entries) > 0 {
		t.Errorf("what is planned is in the ledger: %+v", l.Entries)
	}

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.State = steading.StateRunning })
	suite.WaitFor(t, e, "ready", func(e *steading.Environment) bool {
		return harness.Ready(e) && e.Status.Phase == steading.EnvironmentRunning && len(e.Status.Plan) == 0
	})
	pod := podsIn(t, "plans-dev")[0].UID
	harness.Change(t, &suite, e, func(e *steading.Environment) {
		e.Spec.State, e.Spec.Version = steading.StatePlanned, "1.4.3"
	})
	suite.WaitFor(t, e, "planned while it runs", func(e *steading.Environment) bool {
		return slices.ContainsFunc(e.Status.Plan, func(s string) bool { return strings.Contains(s, "at version 1.4.3") })
	})
	if pods := podsIn(t, "plans-dev"); len(pods) != 1 || pods[0].UID != pod || e.Status.DeployedVersion != "1.4.2" || e.Status.Phase != steading.EnvironmentRunning {
		t.Errorf("planning changed what runs: %s", harness.Describe(e))
	}
}

// TestRecords are counted, stay Registered, and nothing is made for them.
func TestRecords(t *testing.T) {
	t.Parallel()
	suite.NewTenant(t, "records", steading.TenantSpec{})
	for name, edit := range map[string]func(*steading.EnvironmentSpec){
		"laptop":  func(s *steading.EnvironmentSpec) { s.Type = steading.TypeLocalAgent },
		"remote":  func(s *steading.EnvironmentSpec) { s.Type = steading.TypeRemoteAgent },
		"unnamed": func(s *steading.EnvironmentSpec) { s.Version = "" },
	} {
		e := harness.Environment("records", name)
		edit(&e.Spec)
		suite.Create(t, e)
		suite.WaitFor(t, e, "registered", func(e *steading.Environment) bool {
			return harness.Ready(e) && e.Status.Phase == steading.EnvironmentRegistered && isAdmitted(e)
		})
		if exists(t, &runtimev1.Boundary{}, "records-"+name) || e.Status.Namespace != "" || e.Status.Power != "" {
			t.Errorf("record %s: %s", name, harness.Describe(e))
		}
	}
}

// TestOwnersChange reaches the tenant's namespace and all of its environments.
func TestOwnersChange(t *testing.T) {
	t.Parallel()
	x := suite.NewTenant(t, "owners", steading.TenantSpec{Owners: []steading.Subject{{Kind: "User", Name: "ann"}}})
	e := harness.Environment("owners", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	for _, owners := range [][]steading.Subject{
		{{Kind: "User", Name: "ann"}},
		{{Kind: "Group", Name: "owners-admins"}, {Kind: "User", Name: "ben"}},
		nil,
	} {
		harness.Change(t, &suite, x, func(x *steading.Tenant) { x.Spec.Owners = owners })
		for _, namespace := range []string{"tenant-owners", "owners-dev"} {
			harness.Eventually(t, "owners in "+namespace, func(ctx context.Context) error {
				b := &rbacv1.RoleBinding{}
				err := suite.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: names.Owners}, b)
				if client.IgnoreNotFound(err) != nil {
					return err
				}
				var want []rbacv1.Subject
				for _, o := range owners {
					want = append(want, o.RBAC())
				}
				if !slices.Equal(b.Subjects, want) {
					return fmt.Errorf("have %+v, want %+v", b.Subjects, want)
				}
				return nil
			})
		}
	}
}

// TestQuotaExceeded: where somebody else took what the runtime needs, the claim says what the quota said. It is not rolled back
// to not running: with that out of the way the runtime comes up.
func TestQuotaExceeded(t *testing.T) {
	t.Parallel()
	suite.NewTenant(t, "tight", steading.TenantSpec{})
	e := harness.Environment("tight", "dev")
	e.Spec.Size, e.Spec.State = steading.MustResources("4", "16Gi", "2Gi"), steading.StateStopped
	suite.Create(t, e)
	suite.WaitFor(t, e, "stopped", harness.Ready)
	second := smallPod("tight-dev")
	suite.Create(t, second)

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.State = steading.StateRunning })
	suite.WaitFor(t, e, "over its quota", func(e *steading.Environment) bool {
		status, reason, message := harness.Condition(e, string(steading.ConditionDeployed))
		return e.Status.Phase == steading.EnvironmentFailed && status == "False" && reason == string(steading.ReasonQuotaExceeded) && e.Status.Message == message &&
			containsAll(message, []string{"exceeded quota: steading-quota", "requested: limits.cpu=4", "used: limits.cpu=100m", "limited: limits.cpu=4"})
	})
	suite.Delete(t, second)
	suite.WaitFor(t, e, "started", func(e *steading.Environment) bool { return harness.Ready(e) && e.Status.Power == steading.PowerRunning })
}

// smallPod that an operator runs in an environment's namespace.
func smallPod(namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "second"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "second", Image: "example.com/second",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
			}},
		}}},
	}
}

// TestUnschedulable: no node takes the pod, the claim says so in the scheduler's words, and it runs as soon as one does. No
// other test runs meanwhile, since there is one node for all.
func TestUnschedulable(t *testing.T) {
	suite.NewTenant(t, "nonode", steading.TenantSpec{})
	cordon(t, true)
	t.Cleanup(func() {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: local.NodeName}}
		_ = suite.Admin.Patch(context.Background(), n, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"unschedulable":null}}`)))
	})
	e := harness.Environment("nonode", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "unschedulable", func(e *steading.Environment) bool {
		status, reason, message := harness.Condition(e, string(steading.ConditionDeployed))
		return e.Status.Phase == steading.EnvironmentProvisioning && status == "False" && reason == string(steading.ReasonUnschedulable) &&
			containsAll(message, []string{"no node takes the pod: ", "1 node(s) were unschedulable"})
	})
	cordon(t, false)
	suite.WaitFor(t, e, "ready", harness.Ready)
}

func cordon(t *testing.T, unschedulable bool) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: local.NodeName}}
	harness.Change(t, &suite, n, func(n *corev1.Node) { n.Spec.Unschedulable = unschedulable })
}
