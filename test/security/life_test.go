package security

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// live the whole life of two tenants, in which much happens that is rare: one goes with all it has, one keeps its namespace.
// It returns the roles that were bound while they lived.
func live(t *testing.T) map[string]bool {
	t.Helper()
	_, certs := suite.StartOperators(t)
	suite.IssueCertificates(t)
	pull := pullSecret("lifea-pull", suite.Registry.Host(), "life", "life")
	suite.Create(t, pull)
	owners := []steading.Subject{{Kind: "Group", Name: "life-owners"}}
	a := suite.NewTenant(t, "lifea", steading.TenantSpec{Owners: owners, PlatformCluster: steading.PlatformClusterAllowed, Registry: &steading.Registry{
		Prefix: suite.Registry.Host() + "/lifea", PullSecretRef: &steading.LocalSecretReference{Name: pull.Name},
	}})
	b := suite.NewTenant(t, "lifeb", steading.TenantSpec{Owners: owners, DeletionPolicy: steading.DeletionRetain})

	objects := registered(t, "lifea", "edge")
	c, ok := objects[1].(*steading.Context)
	if !ok {
		t.Fatalf("%T is no context", objects[1])
	}
	c.Spec.Zone, c.Spec.Ingress = "services.example.com", &steading.ContextIngress{Addresses: []string{"203.0.113.7"}, ClassName: "traefik"}
	suite.Create(t, objects...)
	waitContext(t, "lifea", "edge", harness.ContextRunning)
	far := liveFar(t)
	late := leaveRemainder(t, certs)
	liveEnvironment(t, a)
	liveHeldUp(t)
	liveComponent(t)
	liveFetched(t)
	bound := boundRoles(t)
	wantRemainder(t, certs, late)
	liveMoved(t, c)
	liveGateway(t)
	liveDrifted(t)
	putRight := liveConfig(t)
	liveReissued(t) // Which has every context looked at.
	putRight(t)
	pool := livePools(t)

	// Changing owners changes bindings. Then all goes at once.
	harness.Change(t, &suite, a, func(a *steading.Tenant) {
		a.Spec.Owners = append(a.Spec.Owners, steading.Subject{Kind: "User", Name: "lisa"})
	})
	suite.Delete(t, a)
	for _, o := range []client.Object{far, c, pool, a} {
		suite.WantGone(t, o)
	}
	suite.Delete(t, b)
	suite.WantGone(t, b)
	harness.Get(t, &suite, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-lifeb"}})
	return bound
}

// liveEnvironment makes one on the platform's own cluster, upgrades, stops, starts and resizes it, and deletes it.
func liveEnvironment(t *testing.T, a *steading.Tenant) {
	t.Helper()
	e := harness.Environment("lifea", "dev")
	e.Spec.ContextRef = &steading.ContextReference{Name: steading.PlatformContext}
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	for _, step := range []struct {
		what string
		edit func(*steading.EnvironmentSpec)
		done func(*steading.Environment) bool
	}{
		{"upgraded", func(s *steading.EnvironmentSpec) { s.Version = "1.4.3" }, func(e *steading.Environment) bool { return e.Status.DeployedVersion == "1.4.3" }},
		{"stopped", func(s *steading.EnvironmentSpec) { s.State = steading.StateStopped }, func(e *steading.Environment) bool { return e.Status.Power == steading.PowerStopped }},
		{"started", func(s *steading.EnvironmentSpec) { s.State = steading.StateRunning }, func(e *steading.Environment) bool { return e.Status.Power == steading.PowerRunning }},
		{"resized", func(s *steading.EnvironmentSpec) { s.Size = steading.MustResources("9", "21Gi", "41Gi") }, func(e *steading.Environment) bool {
			return e.Status.Caps != nil && e.Status.Caps.CPU.String() == "9"
		}},
	} {
		harness.Change(t, &suite, e, func(e *steading.Environment) { step.edit(&e.Spec) })
		suite.WaitFor(t, e, step.what, func(e *steading.Environment) bool { return harness.Ready(e) && step.done(e) })
	}
	// Without a registry no pull secret is needed any more.
	harness.Change(t, &suite, a, func(a *steading.Tenant) { a.Spec.Registry = nil })
	suite.WantGone(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lifea-dev", Name: names.PullSecret}})
	suite.Delete(t, e)
	suite.WantGone(t, e)
}

// liveComponent makes an environment with a component, whose values come from both kinds of objects and change. It stays.
func liveComponent(t *testing.T) {
	t.Helper()
	pushComponent(t, "life", harmless)
	from := []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-lifea", Name: "plain"}, Data: map[string]string{"values.yaml": "a: b\n"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-lifea", Name: "secret"}, StringData: map[string]string{"values.yaml": "c: d\n"}},
	}
	suite.Create(t, from...)
	e := harness.Environment("lifea", "with")
	e.Spec.ContextRef = &steading.ContextReference{Name: steading.PlatformContext}
	e.Spec.Components = []steading.Component{{Name: "life", Chart: "life", Version: "1.0.0", ValuesFrom: []steading.ValuesFrom{
		{Kind: "ConfigMap", Name: "plain", Key: "values.yaml"}, {Kind: "Secret", Name: "secret", Key: "values.yaml"},
	}}}
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
}

// liveHeldUp makes an environment whose deletion is held up by an object in its namespace.
func liveHeldUp(t *testing.T) {
	t.Helper()
	e := harness.Environment("lifea", "held")
	e.Spec.ContextRef = &steading.ContextReference{Name: steading.PlatformContext}
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	holds := holders("lifea-held")
	suite.Create(t, holds...)
	suite.Delete(t, e)
	suite.WaitFor(t, e, "held up", func(e *steading.Environment) bool { return e.Status.Phase == steading.EnvironmentDeletionBlocked })
	for _, o := range holds {
		harness.Change(t, &suite, o, func(o client.Object) { o.SetFinalizers(nil) })
	}
	suite.WantGone(t, e)
}

// holders are an object of each kind that may hold up a namespace, held itself.
func holders(namespace string) []client.Object {
	m := metav1.ObjectMeta{Namespace: namespace, Name: "holds", Finalizers: []string{"example.com/holds"}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "example.com/a"}}},
	}
	job := *pod.DeepCopy()
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: m},
		&corev1.Endpoints{ObjectMeta: m}, //nolint:staticcheck // Deprecated, and still there.
		&corev1.PodTemplate{ObjectMeta: m, Template: pod},
		&corev1.ReplicationController{ObjectMeta: m, Spec: corev1.ReplicationControllerSpec{Replicas: ptr.To(int32(0)), Selector: selector.MatchLabels, Template: &pod}},
		&corev1.Service{ObjectMeta: m, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: m, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "a"}, MaxReplicas: 1,
		}},
		&batchv1.Job{ObjectMeta: m, Spec: batchv1.JobSpec{Suspend: ptr.To(true), Template: job}},
		&coordinationv1.Lease{ObjectMeta: m},
		&discoveryv1.EndpointSlice{ObjectMeta: m, AddressType: discoveryv1.AddressTypeIPv4},
		&policyv1.PodDisruptionBudget{ObjectMeta: m, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}},
	}
}

// liveFar makes an environment on the edge, and waits until it is exposed.
func liveFar(t *testing.T) *steading.Environment {
	t.Helper()
	e := harness.Environment("lifea", "far")
	e.Spec.ContextRef = &steading.ContextReference{Name: "edge"}
	e.Spec.Expose = steading.Expose{Services: []string{"mcp"}}
	suite.Create(t, e)
	suite.WaitFor(t, e, "ready", harness.Ready)
	suite.WaitFor(t, e, "exposed", harness.Exposed)
	return e
}

// liveMoved gives the context another address, which the names of what is exposed follow.
func liveMoved(t *testing.T, c *steading.Context) {
	t.Helper()
	harness.Change(t, &suite, c, func(c *steading.Context) { c.Spec.Ingress.Addresses = []string{"203.0.113.8"} })
	harness.Eventually(t, "the name of lifea-far follows", func(ctx context.Context) error {
		l := &unstructured.UnstructuredList{}
		l.SetAPIVersion("externaldns.k8s.io/v1alpha1")
		l.SetKind("DNSEndpointList")
		if err := suite.Admin.List(ctx, l, client.InNamespace(names.EdgeNamespace), client.MatchingLabels{names.LabelTenant: "lifea"}); err != nil {
			return err
		}
		if len(l.Items) != 1 || !strings.Contains(fmt.Sprint(l.Items[0].Object["spec"]), "203.0.113.8") {
			return fmt.Errorf("names %v", l.Items)
		}
		return nil
	})
}

// liveConfig makes a ProviderConfig, which the provider keeps while it is used, and takes it away again. It returns what
// [liveUsed] does.
func liveConfig(t *testing.T) (putRight func(*testing.T)) {
	t.Helper()
	p := &runtimev1.ProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "life"},
		Spec:       runtimev1.ProviderConfigSpec{CanonicalImage: "example.com/a", RuntimeChart: runtimev1.ChartSource{Repository: "example.com/b", Version: "1.0.0"}},
	}
	suite.Create(t, p)
	harness.Eventually(t, "the ProviderConfig is kept", func(ctx context.Context) error {
		if err := suite.Admin.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if len(p.Finalizers) == 0 {
			return errors.New("it has no finalizer")
		}
		return nil
	})
	putRight = liveUsed(t, p)
	suite.Delete(t, p)
	suite.WantGone(t, p)
	return putRight
}

// boundRoles are the ClusterRoles that are bound in some namespace.
func boundRoles(t *testing.T) map[string]bool {
	t.Helper()
	l := &rbacv1.RoleBindingList{}
	if err := suite.Admin.List(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	bound := map[string]bool{}
	for _, b := range l.Items {
		if b.RoleRef.Kind == "ClusterRole" {
			bound[b.RoleRef.Name] = true
		}
	}
	// The deployer's goes with its environment; on the edge it is bound by the context's credential.
	bound[names.EnvironmentDeployerRole], bound[names.EnvironmentOwnerRole] = true, true
	return bound
}

// pullSecret is a registry's credential, in steading-system.
func pullSecret(name, host, user, password string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: name},
		Type:       corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":%q}}}`, host, user, password)},
	}
}
