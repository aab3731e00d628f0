package acceptance

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// homeUID is the identity of a tenant's own objects.
func homeUID(t *testing.T, tenant string) string {
	t.Helper()
	h := harness.Get(t, &suite, &runtimev1.Home{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.Home(tenant)}})
	return h.Labels[names.LabelComposite]
}

// waitTenant until it is as check wants it.
func waitTenant(t *testing.T, x *steading.Tenant, what string, check func(*steading.Tenant) bool) {
	t.Helper()
	harness.Eventually(t, "tenant "+x.Name+" "+what, func(ctx context.Context) error {
		if err := suite.Reload(ctx, x); err != nil {
			return err
		}
		if !check(x) {
			return fmt.Errorf("phase %s, environments %+v, conditions %+v", x.Status.Phase, x.Status.Environments, x.Status.Conditions)
		}
		return nil
	})
}

// poolOf a tenant, with neither token nor namespace.
func poolOf(tenant string) *steading.RunnerPool {
	return &steading.RunnerPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(tenant), Name: "linux"},
		Spec: steading.RunnerPoolSpec{
			Forgejo: steading.ForgejoServer{
				URL: "https://git.example.com", Scope: steading.ForgejoScope{Organization: tenant},
				TokenSecretRef: steading.TokenSecretReference{Name: "forgejo-pat", Key: steading.DefaultTokenKey},
			},
			Labels: []string{"docker"}, JobNamespace: tenant + "-ci", MaxRunners: 1, PollIntervalSeconds: 5, StartupTimeoutSeconds: 60, JobTimeoutSeconds: 600,
			Assignment: steading.AssignAny, Fairness: steading.FairnessNone,
			Pod: &steading.RunnerPod{
				JobContainer: steading.DefaultJobContainer,
				Template:     runtime.RawExtension{Raw: []byte(`{"spec": {"containers": [{"name": "job", "image": "alpine"}]}}`)},
			},
		},
	}
}

// TestTenantRetained waits for its environments and runner pools, which run on, and leaves its namespace.
func TestTenantRetained(t *testing.T) {
	t.Parallel()
	x := suite.NewTenant(t, "retained", steading.TenantSpec{DeletionPolicy: steading.DeletionRetain})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-retained"}}
	t.Cleanup(func() { _ = suite.Admin.Delete(context.Background(), ns) })
	e := harness.Environment("retained", "dev")
	pool := poolOf("retained")
	suite.Create(t, e)
	suite.Create(t, pool)
	suite.WaitFor(t, e, "ready", harness.Ready)

	suite.Delete(t, x)
	waitTenant(t, x, "waiting for its environment", func(x *steading.Tenant) bool {
		c := x.Status.GetCondition(steading.ConditionDeletionBlocked)
		return x.Status.Phase == steading.TenantDeletionBlocked && containsAll(c.Message, []string{"Environment dev, RunnerPool linux", "the deletion policy is Retain", "kubectl delete environments,contexts,runnerpools --all -n tenant-retained"})
	})
	wantEvent(t, x, "DeletionBlocked", "Environment dev")
	if e = harness.Get(t, &suite, e); e.DeletionTimestamp != nil || !harness.Ready(e) {
		t.Errorf("the environment of a tenant that is retained: %s", harness.Describe(e))
	}
	uid := suite.CompositeUID(t, "retained", "dev")
	suite.Delete(t, e)
	suite.WantGone(t, e)
	waitTenant(t, x, "waiting for its runner pool", func(x *steading.Tenant) bool {
		return containsAll(x.Status.GetCondition(steading.ConditionDeletionBlocked).Message, []string{"waiting for the deletion of RunnerPool linux;"})
	})
	suite.Delete(t, pool)
	suite.WantGone(t, x)
	harness.WantNothingOwned(t, suite.Plane.Config(), uid)
	if ns = harness.Get(t, &suite, ns); ns.DeletionTimestamp != nil {
		t.Error("the namespace of a tenant that is retained is being deleted")
	}
}

// TestTenantDeleted takes all that it has with it.
func TestTenantDeleted(t *testing.T) {
	t.Parallel()
	x := suite.NewTenant(t, "deleted", steading.TenantSpec{Owners: []steading.Subject{{Kind: "User", Name: "ann"}}})
	uids := []string{homeUID(t, "deleted")}
	for _, name := range []string{"dev", "test"} {
		e := harness.Environment("deleted", name)
		suite.Create(t, e)
		suite.WaitFor(t, e, "ready", harness.Ready)
		uids = append(uids, suite.CompositeUID(t, "deleted", name))
	}
	suite.Delete(t, x)
	suite.WantGone(t, x)
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-deleted"}},
		&runtimev1.Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "deleted"}},
	} {
		suite.WantGone(t, o)
	}
	for _, uid := range uids {
		harness.WantNothingOwned(t, suite.Plane.Config(), uid)
	}
}

// TestEverythingDeletedAtOnce: the claims, what was made for them, the provider's configuration, the tenant's credential and
// its namespace, all in one moment. Where the order of things is lost, they still go in the right one.
func TestEverythingDeletedAtOnce(t *testing.T) {
	pull := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "everything-pull"},
		Type:       corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: `{"auths":{}}`},
	}
	suite.Create(t, pull)
	x := suite.NewTenant(t, "everything", steading.TenantSpec{Registry: &steading.Registry{
		Prefix: suite.Registry.Host() + "/everything", PullSecretRef: &steading.LocalSecretReference{Name: pull.Name},
	}})
	e := harness.Environment("everything", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	uids := []string{homeUID(t, "everything"), suite.CompositeUID(t, "everything", "dev")}

	config := harness.Get(t, &suite, &runtimev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig}})
	t.Cleanup(func() { restore(t, config.DeepCopy()) })
	at := metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "everything-dev"}
	all := []client.Object{
		config.DeepCopy(), pull, &runtimev1.Boundary{ObjectMeta: at}, &runtimev1.Release{ObjectMeta: at}, &runtimev1.Placement{ObjectMeta: at},
		&runtimev1.Home{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "everything"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-everything"}}, e, x,
	}
	for _, o := range all[2:6] {
		breakGlass(t, o)
	}
	for _, o := range all {
		suite.Delete(t, o)
	}
	for _, o := range all[1:] {
		suite.WantGone(t, o)
	}
	for _, uid := range uids {
		harness.WantNothingOwned(t, suite.Plane.Config(), uid)
	}
	suite.WantUsage(t, uids[1], runtimev1.TransitionProvisioned, runtimev1.TransitionDeleted)
	suite.WantGone(t, all[0])
}

// restore a provider's configuration that was deleted, once nothing that is left uses it.
func restore(t *testing.T, c *runtimev1.ClusterProviderConfig) {
	t.Helper()
	c.ObjectMeta = metav1.ObjectMeta{Name: c.Name, Labels: c.Labels, Annotations: c.Annotations}
	c.Status = runtimev1.ProviderConfigStatus{}
	ctx, cancel := context.WithTimeout(context.Background(), harness.Within)
	defer cancel()
	for {
		err := suite.Admin.Create(ctx, c)
		if err == nil {
			return
		}
		if !kerrors.IsAlreadyExists(err) || ctx.Err() != nil {
			t.Fatalf("cannot restore the provider's configuration: %v", err)
		}
		c.ResourceVersion = ""
		time.Sleep(100 * time.Millisecond)
	}
}

// breakGlass lets a managed resource be deleted while its claim lives.
func breakGlass(t *testing.T, o client.Object) {
	t.Helper()
	harness.Change(t, &suite, o, func(o client.Object) {
		a := o.GetAnnotations()
		if a == nil {
			a = map[string]string{}
		}
		a[names.AnnotationBreakGlass] = "a test"
		o.SetAnnotations(a)
	})
}

// TestBoundaryDeletedAlone: nobody may, unless glass is broken; then what runs in it goes first, and both are made anew.
func TestBoundaryDeletedAlone(t *testing.T) {
	t.Parallel()
	suite.NewTenant(t, "alone", steading.TenantSpec{})
	e := harness.Environment("alone", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	uid := suite.CompositeUID(t, "alone", "dev")
	at := metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "alone-dev"}
	b, r := &runtimev1.Boundary{ObjectMeta: at}, &runtimev1.Release{ObjectMeta: at}
	for _, o := range []client.Object{b, r} {
		if err := suite.Admin.Delete(t.Context(), o); !kerrors.IsForbidden(err) || !containsAll(err.Error(), []string{"goes with the claim it serves: delete that", names.AnnotationBreakGlass}) {
			t.Fatalf("deleting a %T: %v", o, err)
		}
	}
	before := harness.Get(t, &suite, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "alone-dev"}}).UID

	breakGlass(t, b)
	suite.Delete(t, b)
	harness.Eventually(t, "the boundary waits for its release", func(ctx context.Context) error {
		if err := suite.Reload(ctx, b); err != nil {
			return err
		}
		if got := b.Status.AtProvider.Blockers; len(got) != 1 || got[0] != "waiting for Release alone-dev" {
			return fmt.Errorf("blockers %q", got)
		}
		return nil
	})
	wantReadyPod(t, "alone-dev")

	breakGlass(t, r)
	suite.Delete(t, r)
	harness.Eventually(t, "another namespace", func(ctx context.Context) error {
		ns := &corev1.Namespace{}
		if err := suite.Admin.Get(ctx, client.ObjectKey{Name: "alone-dev"}, ns); err != nil {
			return err
		}
		if ns.UID == before {
			return fmt.Errorf("it is still the old one, deleted %v", ns.DeletionTimestamp)
		}
		return nil
	})
	suite.WaitFor(t, e, "ready again", func(e *steading.Environment) bool { return harness.Ready(e) && servesVersion(t, "alone-dev", "1.4.2") })
	suite.Delete(t, e)
	suite.WantGone(t, e)
	harness.WantNothingOwned(t, suite.Plane.Config(), uid)
}

// TestEnvironmentOfTheSameName can be made as soon as the old one is gone, and is another one.
func TestEnvironmentOfTheSameName(t *testing.T) {
	t.Parallel()
	suite.NewTenant(t, "same", steading.TenantSpec{Quota: steading.Quota{MaxEnvironments: new(int32(1))}})
	e := harness.Environment("same", "dev")
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	uid := suite.CompositeUID(t, "same", "dev")
	obstacle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "same-dev", Name: "settings"}}
	hold(t, obstacle)

	suite.Delete(t, e)
	if err := suite.Admin.Create(t.Context(), harness.Environment("same", "dev")); !kerrors.IsAlreadyExists(err) {
		t.Fatalf("creating an environment of the same name: %v", err)
	}
	suite.WaitFor(t, e, "blocked", phase(steading.EnvironmentDeletionBlocked))
	letGo(t, obstacle)
	again := harness.Environment("same", "dev")
	harness.Eventually(t, "create it again", func(ctx context.Context) error { return suite.Admin.Create(ctx, again) })
	suite.WaitFor(t, again, "ready", harness.Ready)
	harness.WantNothingOwned(t, suite.Plane.Config(), uid)
	if now := suite.CompositeUID(t, "same", "dev"); now == uid {
		t.Error("it has the identity of the old one")
	}
	suite.WantUsage(t, uid, runtimev1.TransitionProvisioned, runtimev1.TransitionDeleted)
}
