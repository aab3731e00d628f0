package address

import (
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// reached reports whether pods get at an address, at any port.
func reached(rules []networkingv1.NetworkPolicyEgressRule, a netip.Addr) bool {
	in := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(a) }
	for _, r := range rules {
		if len(r.Ports) > 0 {
			continue
		}
		for _, to := range r.To {
			if in(to.IPBlock.CIDR) && !slices.ContainsFunc(to.IPBlock.Except, in) {
				return true
			}
		}
	}
	return false
}

func TestPodsDoNotReachMetadataServices(t *testing.T) {
	for a, want := range map[string]bool{
		"203.0.113.7": true, "10.0.0.7": true, "169.253.255.255": true, "100.100.100.201": true, "168.63.129.15": true, "2001:db8::7": true, "fd00:ec2::253": true,
		"169.254.169.254": false, "169.254.170.2": false, "100.100.100.200": false, "168.63.129.16": false, "fd00:ec2::254": false, "fe80::a9fe:a9fe": false,
	} {
		if got := reached(Egress(), netip.MustParseAddr(a)); got != want {
			t.Errorf("%s is reached: got %v, want %v", a, got, want)
		}
	}
}

// TestPodsReachWhatClaimsMayName: what a claim may name and what pods reach go by the same list.
func TestPodsReachWhatClaimsMayName(t *testing.T) {
	for _, a := range metadataServices {
		if reached(Egress(), a) {
			t.Errorf("pods reach %s, which no claim may name", a)
		}
	}
	for _, p := range linkLocal {
		if err := (Policy{}).Check(p.Addr().Next()); err == nil {
			t.Errorf("a claim may name addresses in %s, which pods do not reach", p)
		}
	}
}

// TestNamesAreResolvedAnywhere: node-local DNS has a link-local address, and Azure's that of its metadata service.
func TestNamesAreResolvedAnywhere(t *testing.T) {
	ports := 0
	for _, r := range Egress() {
		if len(r.To) > 0 {
			continue
		}
		for _, p := range r.Ports {
			if p.Port.IntValue() != 53 || p.EndPort != nil {
				t.Errorf("port %s of every address is open", p.Port)
			}
			ports++
		}
	}
	if ports != 2 {
		t.Errorf("%d ports are open at every address, want TCP and UDP 53", ports)
	}
}

// TestProvidersReachNoMoreThanPods: the manifests of the providers' own network policies cannot share code.
func TestProvidersReachNoMoreThanPods(t *testing.T) {
	for _, provider := range []string{"provider-forgejo", "provider-runtime"} {
		raw, err := os.ReadFile("../../../cluster/install/runtimes/30-networkpolicy-" + provider + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		p := &networkingv1.NetworkPolicy{}
		if err := yaml.UnmarshalStrict(raw, p); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Egress(), p.Spec.Egress); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", provider, diff)
		}
	}
}
