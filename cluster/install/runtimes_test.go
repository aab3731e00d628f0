package install

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"
	pkgv1beta1 "github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/cluster/local"
)

// processes are the packages that bring a process, by their folders.
func processes(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("../../package/*/crossplane.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range found {
		if kind := read(t, f)[0].GetKind(); kind != pkgmetav1.ConfigurationKind {
			all = append(all, filepath.Base(filepath.Dir(f)))
		}
	}
	if len(all) < 2 {
		t.Fatalf("found packages %v, want function and provider at least", all)
	}
	return all
}

// runtimeConfig of a process.
func runtimeConfig(t *testing.T, process string) pkgv1beta1.DeploymentRuntimeConfig {
	t.Helper()
	configs := objectsOf[pkgv1beta1.DeploymentRuntimeConfig](t, "runtimes/10-runtime-"+process+".yaml", "DeploymentRuntimeConfig")
	if len(configs) != 1 || configs[0].Name != process {
		t.Fatalf("want one DeploymentRuntimeConfig called %s", process)
	}
	return configs[0]
}

// TestEveryPackageRunsAsItsConfigSays: a package that is added runs with a config, found by its image, or not at all.
func TestEveryPackageRunsAsItsConfigSays(t *testing.T) {
	images := map[string]string{}
	for _, i := range objectsOf[pkgv1beta1.ImageConfig](t, "runtimes/20-images.yaml", "ImageConfig") {
		for _, m := range i.Spec.MatchImages {
			images[m.Prefix] = i.Spec.Runtime.ConfigReference.Name
		}
	}
	want := map[string]string{}
	for _, p := range processes(t) {
		want["ghcr.io/steading-dev/"+p] = runtimeConfig(t, p).Name
	}
	if diff := cmp.Diff(want, images); diff != "" {
		t.Errorf("configs by image: -want, +got:\n%s", diff)
	}
}

func TestProcessesHaveNoPowerOverTheirNode(t *testing.T) {
	for _, p := range processes(t) {
		t.Run(p, func(t *testing.T) {
			pod := runtimeConfig(t, p).Spec.DeploymentTemplate.Spec.Template.Spec
			if pod.HostNetwork || pod.HostPID || pod.HostIPC {
				t.Error("the pod shares something of its node")
			}
			wantPod := &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532), RunAsGroup: ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}
			if diff := cmp.Diff(wantPod, pod.SecurityContext); diff != "" {
				t.Errorf("pod: -want, +got:\n%s", diff)
			}
			if len(pod.Containers) != 1 {
				t.Fatalf("%d containers, want one", len(pod.Containers))
			}
			c := pod.Containers[0]
			if c.Name != "package-runtime" {
				t.Errorf("container %s, want the name by which Crossplane knows its own", c.Name)
			}
			wantContainer := &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), Privileged: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}
			if diff := cmp.Diff(wantContainer, c.SecurityContext); diff != "" {
				t.Errorf("container: -want, +got:\n%s", diff)
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("resources %v, want requests, and a limit of memory", c.Resources)
			}
			if c.LivenessProbe == nil || c.ReadinessProbe == nil {
				t.Error("want probes")
			}
		})
	}
}

// TestPackagedProvidersHaveTheirPower: Crossplane runs packages in its own namespace, under the account that the config names.
// What is bound to a provider's account is bound to that one too.
func TestPackagedProvidersHaveTheirPower(t *testing.T) {
	for provider, least := range map[string]int{names.ProviderRuntime: 5, names.ProviderForgejo: 2} {
		t.Run(provider, func(t *testing.T) { wantBoundTwice(t, provider, least) })
	}
}

// wantBoundTwice expects every binding of a provider's account, at least so many, to be of both its accounts.
func wantBoundTwice(t *testing.T, provider string, least int) {
	t.Helper()
	config := runtimeConfig(t, provider)
	account := *config.Spec.ServiceAccountTemplate.Metadata.Name
	bindings := 0
	for _, f := range files(t) {
		for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
			for _, b := range objectsOf[rbacv1.ClusterRoleBinding](t, f, kind) {
				has := func(namespace string) bool {
					return slices.Contains(b.Subjects, rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: account})
				}
				if has(names.SystemNamespace) || has(local.CrossplaneNamespace) {
					bindings++
				}
				if has(names.SystemNamespace) != has(local.CrossplaneNamespace) {
					t.Errorf("%s %s of %s: bound to %v", kind, b.Name, f, b.Subjects)
				}
			}
		}
	}
	if bindings < least {
		t.Errorf("found %d bindings of %s, want at least %d: the test looks in the wrong place", bindings, account, least)
	}
	if env := config.Spec.DeploymentTemplate.Spec.Template.Spec.Containers[0].Env; !slices.Contains(env, corev1.EnvVar{Name: "LEADER_ELECT_NAMESPACE", Value: names.SystemNamespace}) {
		t.Errorf("environment %v, want the lease where the provider may write it", env)
	}
}

// TestNetworkPoliciesSelectTheProcesses by labels that their pods have, and open ports that they serve.
func TestNetworkPoliciesSelectTheProcesses(t *testing.T) {
	for _, p := range processes(t) {
		t.Run(p, func(t *testing.T) {
			policies := objectsOf[netv1.NetworkPolicy](t, "runtimes/30-networkpolicy-"+p+".yaml", "NetworkPolicy")
			if len(policies) != 1 {
				t.Fatalf("%d policies, want one", len(policies))
			}
			policy := policies[0]
			if policy.Namespace != local.CrossplaneNamespace {
				t.Errorf("namespace %s, want that of Crossplane's pods", policy.Namespace)
			}
			template := runtimeConfig(t, p).Spec.DeploymentTemplate.Spec.Template
			for k, v := range policy.Spec.PodSelector.MatchLabels {
				if template.Labels[k] != v {
					t.Errorf("pods have label %s=%q, the policy selects %q", k, template.Labels[k], v)
				}
			}
			if len(policy.Spec.PodSelector.MatchLabels) == 0 {
				t.Error("the policy selects all pods of Crossplane's namespace")
			}
			if diff := cmp.Diff([]netv1.PolicyType{netv1.PolicyTypeIngress, netv1.PolicyTypeEgress}, policy.Spec.PolicyTypes); diff != "" {
				t.Errorf("types: -want, +got:\n%s", diff)
			}
			probe := template.Spec.Containers[0].ReadinessProbe.HTTPGet.Port
			if !slices.ContainsFunc(policy.Spec.Ingress, func(r netv1.NetworkPolicyIngressRule) bool {
				return len(r.From) == 0 && slices.ContainsFunc(r.Ports, func(n netv1.NetworkPolicyPort) bool { return *n.Port == probe })
			}) {
				t.Errorf("port %s, which the node asks for readiness, is not open", probe.String())
			}
			if strings.HasPrefix(p, "function-") && len(policy.Spec.Egress) > 0 {
				t.Error("the function talks to nobody, and may")
			}
		})
	}
}
