package security

import (
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// manifestBlock is a manifest in a document.
var manifestBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestNamespaceIsHeldInAsDocumented: what is in an environment's namespace is what docs/isolation.md says, no more and no
// less, and the API server acts upon it.
func TestNamespaceIsHeldInAsDocumented(t *testing.T) {
	suite.NewTenant(t, "bound", steading.TenantSpec{Docker: steading.DockerAllowed})
	e, docker := harness.Environment("bound", "dev"), harness.Environment("bound", "docker")
	docker.Spec.Docker.Enabled, docker.Spec.Size = true, steading.MustResources("16", "36864Mi", "72Gi")
	suite.Create(t, e, docker)
	suite.WaitFor(t, e, "ready", harness.Ready)
	suite.WaitFor(t, docker, "ready", harness.Ready)

	t.Run("documented", func(t *testing.T) { wantDocumented(t, "bound-dev") })
	t.Run("pod security", func(t *testing.T) {
		wantPodSecurity(t, "bound-dev", "baseline", "restricted")
		wantPodSecurity(t, "bound-docker", "privileged", "baseline")
	})
	t.Run("pods", podsAreHeldIn)
	t.Run("services", servicesAreHeldIn)
}

// wantDocumented expects the manifests of the document, and no other of Steading's of their kinds.
func wantDocumented(t *testing.T, namespace string) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/isolation.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]int{}
	for _, m := range manifestBlock.FindAllSubmatch(doc, -1) {
		want := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(m[1], &want.Object); err != nil {
			t.Fatal(err)
		}
		want.SetNamespace(namespace)
		documented[want.GroupVersionKind().String()]++
		have := &unstructured.Unstructured{}
		have.SetGroupVersionKind(want.GroupVersionKind())
		if err := suite.Admin.Get(t.Context(), client.ObjectKeyFromObject(want), have); err != nil {
			t.Error(err)
			continue
		}
		// The API server says how it understands the manifest: defaults and quantities.
		want.SetName("documented")
		if err := client.NewDryRunClient(suite.Admin).Create(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(have.Object["spec"], want.Object["spec"]) {
			t.Errorf("%s %s is not as documented:\n have %v\n want %v", have.GetKind(), have.GetName(), have.Object["spec"], want.Object["spec"])
		}
	}
	if len(documented) != 3 {
		t.Errorf("manifests of the kinds %v are documented", documented)
	}
	for kind, n := range documented {
		group, kind, _ := strings.Cut(kind, ", Kind=")
		l := &unstructured.UnstructuredList{}
		l.SetAPIVersion(strings.TrimPrefix(group, "/"))
		l.SetKind(kind)
		if err := suite.Admin.List(t.Context(), l, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/managed-by": "steading"}); err != nil {
			t.Fatal(err)
		}
		if len(l.Items) != n {
			t.Errorf("%d objects of kind %s are Steading's, %d are documented", len(l.Items), kind, n)
		}
	}
}

func wantPodSecurity(t *testing.T, namespace, enforce, tell string) {
	t.Helper()
	ns := harness.Get(t, &suite, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	for mode, want := range map[string]string{"enforce": enforce, "warn": tell, "audit": tell} {
		if have := ns.Labels["pod-security.kubernetes.io/"+mode]; have != want {
			t.Errorf("namespace %s: pod security %s is %q, want %q", namespace, mode, have, want)
		}
	}
}

// podsAreHeldIn makes pods that the namespace of an environment without docker does not let in, one with docker does, but for
// those that do not fit the quota.
func podsAreHeldIn(t *testing.T) {
	container := func(edit func(*corev1.PodSpec, *corev1.Container)) *corev1.PodSpec {
		s := &corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "example.com/a", SecurityContext: &corev1.SecurityContext{}}}}
		edit(s, &s.Containers[0])
		return s
	}
	cases := map[string]struct {
		spec *corev1.PodSpec
		says string
		both bool // refused with docker too
	}{
		"plain":            {spec: container(func(*corev1.PodSpec, *corev1.Container) {})},
		"a second of size": {spec: container(func(_ *corev1.PodSpec, c *corev1.Container) { c.Resources.Limits = limits("500m", "512Mi") })},
		"privileged":       {spec: container(func(_ *corev1.PodSpec, c *corev1.Container) { c.SecurityContext.Privileged = ptr.To(true) }), says: "privileged"},
		"host network":     {spec: container(func(s *corev1.PodSpec, _ *corev1.Container) { s.HostNetwork = true }), says: "host namespaces"},
		"host processes":   {spec: container(func(s *corev1.PodSpec, _ *corev1.Container) { s.HostPID = true }), says: "host namespaces"},
		"path of the node": {spec: container(func(s *corev1.PodSpec, _ *corev1.Container) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}), says: "hostPath volumes"},
		"capability": {spec: container(func(_ *corev1.PodSpec, c *corev1.Container) {
			c.SecurityContext.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}
		}), says: "non-default capabilities"},
		"too large": {spec: container(func(_ *corev1.PodSpec, c *corev1.Container) { c.Resources.Limits = limits("64", "1Gi") }), says: "exceeded quota: steading-quota", both: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, namespace := range []string{"bound-dev", "bound-docker"} {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}, Spec: *tc.spec.DeepCopy()}
				err := client.NewDryRunClient(suite.Admin).Create(t.Context(), p)
				says := tc.says
				if namespace == "bound-docker" && !tc.both {
					says = ""
				}
				wantRefused(t, namespace, err, says)
				if err == nil && p.Spec.Containers[0].Resources.Limits.Cpu().IsZero() {
					t.Errorf("in %s: the container has no limit", namespace)
				}
			}
		})
	}
}

func limits(cpu, memory string) corev1.ResourceList {
	r := steading.MustResources(cpu, memory, "1Gi")
	return corev1.ResourceList{corev1.ResourceCPU: r.CPU, corev1.ResourceMemory: r.Memory}
}

// servicesAreHeldIn: no Service opens a port beside the ingress, or leads elsewhere.
func servicesAreHeldIn(t *testing.T) {
	ports := []corev1.ServicePort{{Port: 80}}
	cases := map[string]struct {
		spec corev1.ServiceSpec
		says string
	}{
		"cluster IP":    {spec: corev1.ServiceSpec{Ports: ports}},
		"node port":     {spec: corev1.ServiceSpec{Ports: ports, Type: corev1.ServiceTypeNodePort}, says: "exceeded quota: steading-quota, requested: services.nodeports=1"},
		"load balancer": {spec: corev1.ServiceSpec{Ports: ports, Type: corev1.ServiceTypeLoadBalancer}, says: "exceeded quota: steading-quota"},
		"external IP":   {spec: corev1.ServiceSpec{Ports: ports, ExternalIPs: []string{"203.0.113.7"}}, says: "refuse-external-services"},
		"external name": {spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "kubernetes.default.svc"}, says: "refuse-external-services"},
	}
	for name, tc := range cases {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "bound-dev", Name: "x"}, Spec: tc.spec}
		wantRefused(t, name, client.NewDryRunClient(suite.Admin).Create(t.Context(), s), tc.says)
	}
}

func wantRefused(t *testing.T, what string, err error, says string) {
	t.Helper()
	switch {
	case says == "" && err != nil:
		t.Errorf("%s: refused: %v", what, err)
	case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
		t.Errorf("%s: got %v, want refused: %s", what, err, says)
	}
}
