package address

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// linkLocal networks are where most clouds have their metadata services.
var linkLocal = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10")}

// Egress lets pods reach everything but addresses where clouds and nodes give their own credentials away: link-local ones and
// those of metadata services. Names may be resolved there, too: node-local DNS has such an address, and so has Azure's.
func Egress() []networkingv1.NetworkPolicyEgressRule {
	four := &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}
	six := &networkingv1.IPBlock{CIDR: "::/0"}
	except := func(p netip.Prefix) {
		block := six
		if p.Addr().Is4() {
			block = four
		}
		block.Except = append(block.Except, p.String())
	}
	for _, p := range linkLocal {
		except(p)
	}
	for _, a := range metadataServices {
		except(netip.PrefixFrom(a, a.BitLen()))
	}
	dns := intstr.FromInt32(53)
	return []networkingv1.NetworkPolicyEgressRule{
		{To: []networkingv1.NetworkPolicyPeer{{IPBlock: four}, {IPBlock: six}}},
		{Ports: []networkingv1.NetworkPolicyPort{
			{Protocol: ptr.To(corev1.ProtocolUDP), Port: &dns},
			{Protocol: ptr.To(corev1.ProtocolTCP), Port: &dns},
		}},
	}
}
