package local

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// told has all that texts of the node ask for.
func told() *Plane {
	return &Plane{
		dir: "/plane", subnet: &subnet{n: 200}, registry: &Registry{host: "10.200.255.1:5000"},
		images: map[Tool]string{Pause: "r/pause@1", CoreDNS: "r/coredns@2", Provisioner: "r/provisioner@3", NetworkPolicies: "r/policies@4"},
	}
}

func TestNodesSettingsAreFilledIn(t *testing.T) {
	for name, text := range map[string]string{
		"containerd": containerdConfig, "registry": registryConfig, "network": networkConfig, "kubelet": kubeletConfig, "kube-proxy": kubeProxyConfig,
	} {
		if got := told().filled(text); strings.Contains(got, "${") {
			t.Errorf("%s: something is left to be filled in:\n%s", name, got)
		}
	}
}

func TestAddonsAreFilledIn(t *testing.T) {
	all, err := told().readAddons()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]bool{}
	for _, o := range all {
		if b, err := o.MarshalJSON(); err != nil || strings.Contains(string(b), "${") {
			t.Errorf("%s %s: something is left to be filled in: %s, %v", o.GetKind(), o.GetName(), b, err)
		}
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range containers {
			if c, ok := c.(map[string]any); ok {
				image, _ := c["image"].(string)
				images[image] = true
			}
		}
	}
	for _, want := range []string{"r/coredns@2", "r/provisioner@3", "r/policies@4"} {
		if !images[want] {
			t.Errorf("no addon runs %s: %v", want, images)
		}
	}
}
