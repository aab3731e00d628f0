package charts

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// values of an environment acme/dev, with some of them changed.
func values(change ...func(map[string]any)) map[string]any {
	v := map[string]any{
		"tenant":      "acme",
		"environment": "dev",
		"version":     "1.4.2",
		"image":       "ghcr.io/acme/acme-devops:1.4.2",
	}
	for _, c := range change {
		c(v)
	}
	return v
}

func set(key string, value any) func(map[string]any) {
	return func(v map[string]any) { v[key] = value }
}

func render(t *testing.T, v map[string]any) ([]*unstructured.Unstructured, error) {
	t.Helper()
	c, err := Runtime()
	if err != nil {
		t.Fatal(err)
	}
	return Render(c, names.Release("acme"), names.EnvironmentNamespace("acme", "dev"), v)
}

func TestRuntimeRendersAsBefore(t *testing.T) {
	cases := map[string]struct {
		reason string
		values map[string]any
	}{
		"plain":   {reason: "an environment with nothing special", values: values()},
		"docker":  {reason: "a sidecar, its claim, and no fsGroup", values: values(set("docker", map[string]any{"enabled": true}))},
		"stopped": {reason: "no replicas, but all the rest", values: values(set("stopped", true))},
		"pullsecret": {
			reason: "a Secret to pull with, and all that the provider gives",
			values: values(
				set("imagePullSecrets", []any{map[string]any{"name": names.PullSecret}}),
				set("namespace", "acme-dev"),
				set("stopped", false),
				set("docker", map[string]any{"enabled": false}),
				set("caps", map[string]any{"cpu": "16", "memory": "36Gi", "storage": "72Gi"})),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := render(t, tc.values)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			got := &bytes.Buffer{}
			for _, o := range objects {
				y, err := yaml.Marshal(o.Object)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n")
				got.Write(y)
			}
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s: -want, +got (go test -update if meant):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRuntimeRefuses(t *testing.T) {
	resources := func(cpu string) map[string]any {
		return map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": cpu}}}
	}
	cases := map[string]struct {
		reason string
		values map[string]any
		want   string
	}{
		"NoTenant":     {"it is called after the tenant", values(set("tenant", "")), "tenant"},
		"TenantHyphen": {"names must split one way", values(set("tenant", "a-b")), "tenant"},
		"NoVersion":    {"the runtime is told its version", values(set("version", "")), "version"},
		"NoImage":      {"nothing to run", values(set("image", "")), "image"},
		"Untagged":     {"latest is never meant", values(set("image", "ghcr.io/acme/acme-devops")), "image"},
		"Port":         {"a registry's port is no tag", values(set("image", "127.0.0.1:5000/devops")), "image"},
		"Unknown":      {"a typo", values(set("replicas", 3)), "replicas"},
		"UnknownDeep":  {"a typo deeper down", values(set("docker", map[string]any{"enable": true})), "enable"},
		"StoppedWord":  {"a word is true in templates", values(set("stopped", "false")), "stopped"},
		"Root":         {"the runtime never is root", values(set("runtime", map[string]any{"user": 0})), "user"},
		"Unsized":      {"every container is sized", values(set("runtime", map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": nil}}})), "cpu"},
		"NoQuantity":   {"not an amount", values(set("runtime", resources("four"))), "cpu"},
		"Namespace": {
			"the provider and helm disagree",
			values(set("namespace", "acme-prod")),
			"its namespace is acme-prod, the release is being installed into acme-dev",
		},
		"Ports": {
			"two servers on one port",
			values(set("runtime", map[string]any{"ports": map[string]any{"mcp": 9100}})),
			"runtime.ports.mcp and runtime.ports.metrics are both 9100",
		},
		"CapCPU": {
			"the quota would refuse the second container",
			values(set("docker", map[string]any{"enabled": true}), set("caps", map[string]any{"cpu": "11900m"})),
			"it needs cpu 4 + 8, the environment has 11900m: ask for a larger size",
		},
		"CapMemory": {
			"the quota would refuse the pod",
			values(set("caps", map[string]any{"memory": "16383Mi"})),
			"it needs memory 16384Mi, the environment has 16383Mi",
		},
		"CapStorage": {
			"the quota would refuse the claim",
			values(set("caps", map[string]any{"storage": "2G"})),
			"it needs storage 2Gi, the environment has 2G",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, tc.values)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error that says %q, got: %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestRuntimeFitsItsCapsExactly(t *testing.T) {
	for _, caps := range []map[string]any{
		{"cpu": "12", "memory": "32Gi", "storage": "52Gi"},
		{"cpu": 12, "memory": 34359738368.0, "storage": 55834574848},
		{"cpu": "12000m", "memory": "33554432Ki", "storage": "0.06Ti"},
		{"cpu": "12e0", "memory": "1P", "storage": "1E"},
	} {
		if _, err := render(t, values(set("docker", map[string]any{"enabled": true}), set("caps", caps))); err != nil {
			t.Errorf("%v: %v", caps, err)
		}
	}
}

// Helm reads numbers as floats, which templates write as 1.00065e+09.
func TestRuntimeWritesLargeNumbersOut(t *testing.T) {
	objects, err := render(t, values(set("runtime", map[string]any{"user": 1000650000.0})))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range objectsOf[appsv1.Deployment](t, objects, "Deployment") {
		if got := *d.Spec.Template.Spec.SecurityContext.FSGroup; got != 1000650000 {
			t.Errorf("fsGroup is %d", got)
		}
	}
}

// Helm does not validate against a cluster's schema when Steading deploys, so a misspelt field would be dropped.
func TestRuntimeHasNoUnknownFields(t *testing.T) {
	objects, err := render(t, values(set("docker", map[string]any{"enabled": true}), set("imagePullSecrets", []any{map[string]any{"name": names.PullSecret}})))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		typed, err := scheme.Scheme.New(o.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, typed, true); err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func TestRuntimeNamesAreTheAPIs(t *testing.T) {
	objects, err := render(t, values(set("docker", map[string]any{"enabled": true})))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, o := range objects {
		if o.GetNamespace() != names.EnvironmentNamespace("acme", "dev") {
			t.Errorf("%s %s is in namespace %q", o.GetKind(), o.GetName(), o.GetNamespace())
		}
		got[o.GetKind()] = append(got[o.GetKind()], o.GetName())
	}
	release := names.Release("acme")
	want := map[string][]string{
		"Deployment":            {release},
		"NetworkPolicy":         {release},
		"PersistentVolumeClaim": {release + "-docker", release + "-home"},
		"Role":                  {release},
		"RoleBinding":           {release},
		"Service":               {names.ServiceOf("acme", "mcp")},
		"ServiceAccount":        {release},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// The deployer, who makes the Role, can give no more than it has itself.
func TestRuntimeMayWhatItsOwnersMay(t *testing.T) {
	b, err := os.ReadFile("../../cluster/install/base/20-clusterrole-environment-owner.yaml")
	if err != nil {
		t.Fatal(err)
	}
	owner := rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(b, &owner); err != nil {
		t.Fatal(err)
	}
	objects, err := render(t, values())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range objectsOf[rbacv1.Role](t, objects, "Role") {
		if diff := cmp.Diff(owner.Rules, r.Rules); diff != "" {
			t.Errorf("-owners, +runtime:\n%s", diff)
		}
	}
}

func TestRuntimeMayOnlyReadLookAndForward(t *testing.T) {
	objects, err := render(t, values())
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{"get": true, "list": true, "watch": true}
	for _, r := range objectsOf[rbacv1.Role](t, objects, "Role") {
		for _, rule := range r.Rules {
			for _, res := range rule.Resources {
				if res == "*" || res == "secrets" || strings.HasPrefix(res, "secrets/") {
					t.Errorf("the runtime may reach %s", res)
				}
				for _, verb := range rule.Verbs {
					if !read[verb] && (verb != "create" || (res != "pods/exec" && res != "pods/portforward")) {
						t.Errorf("the runtime may %s %s", verb, res)
					}
				}
			}
		}
	}
	for _, b := range objectsOf[rbacv1.RoleBinding](t, objects, "RoleBinding") {
		if b.RoleRef.Kind != "Role" {
			t.Errorf("the runtime has %s %s", b.RoleRef.Kind, b.RoleRef.Name)
		}
	}
}

// The devops container passes Pod Security's level restricted in every rendering, the others where docker is granted.
func TestRuntimeContainersAreHeldIn(t *testing.T) {
	for _, docker := range []bool{false, true} {
		objects, err := render(t, values(set("docker", map[string]any{"enabled": docker})))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range objectsOf[appsv1.Deployment](t, objects, "Deployment") {
			pod := d.Spec.Template.Spec
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				for name, list := range map[string]map[string]resource.Quantity{"limits": amounts(c.Resources.Limits), "requests": amounts(c.Resources.Requests)} {
					for _, r := range []string{"cpu", "memory"} {
						if q := list[r]; q.IsZero() {
							t.Errorf("docker %t: container %s has no %s.%s", docker, c.Name, name, r)
						}
					}
				}
				if c.Name != "devops" {
					if !docker {
						t.Errorf("container %s is there without docker", c.Name)
					}
					continue
				}
				s := c.SecurityContext
				if !*s.RunAsNonRoot || *s.RunAsUser == 0 || *s.AllowPrivilegeEscalation || s.Privileged != nil ||
					s.SeccompProfile.Type != "RuntimeDefault" || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) > 0 {
					t.Errorf("docker %t: container devops is not restricted: %v", docker, s)
				}
			}
		}
	}
}

func amounts[K ~string](in map[K]resource.Quantity) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for k, v := range in {
		out[string(k)] = v
	}
	return out
}

// A second pod has to fit beside the runtime within the default quota of an environment.
func TestSecondPodFitsTheDefaultQuota(t *testing.T) {
	quota := steading.Resources{CPU: resource.MustParse("16"), Memory: resource.MustParse("36864Mi"), Storage: resource.MustParse("72Gi")}
	second := steading.Resources{CPU: resource.MustParse("1"), Memory: resource.MustParse("1Gi"), Storage: resource.MustParse("1Gi")}
	for _, docker := range []bool{false, true} {
		floor, err := RuntimeFloor(docker)
		if err != nil {
			t.Fatal(err)
		}
		both := floor.Add(second).Amounts()
		for i, limit := range quota.Amounts() {
			if both[i].Quantity.Cmp(limit.Quantity) > 0 {
				t.Errorf("docker %t: %s %s with a second pod, the quota has %s", docker, limit.Name, both[i].Quantity.String(), limit.Quantity.String())
			}
		}
	}
}

func objectsOf[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) []T {
	t.Helper()
	var out []T
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		var v T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		t.Fatalf("no %s was rendered", kind)
	}
	return out
}
