package address

import (
	"net/netip"
	"strings"
	"testing"
)

func TestPolicy(t *testing.T) {
	p := Policy{
		Allowed:      []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("169.254.7.0/24")},
		ControlPlane: []netip.Addr{netip.MustParseAddr("10.96.0.1")},
	}
	cases := map[string]struct {
		reason string
		want   string // empty: it is taken
	}{
		"203.0.113.7":              {reason: "Any host of the world is taken."},
		"10.0.0.7":                 {reason: "So is one of a private network."},
		"2001:db8::7":              {reason: "So is one by IPv6."},
		"127.0.0.1":                {reason: "What the operator allows is taken."},
		"::ffff:127.0.0.1":         {reason: "Also when it is written as IPv6."},
		"169.254.7.9":              {reason: "A network is allowed as a whole."},
		"127.0.0.2":                {reason: "The rest of the loopback network is not.", want: "a loopback address"},
		"::ffff:127.0.0.2":         {reason: "However it is written.", want: "a loopback address"},
		"::1":                      {reason: "By IPv6 too.", want: "a loopback address"},
		"169.254.169.254":          {reason: "Metadata services are link-local.", want: "a link-local address"},
		"64:ff9b::a9fe:a9fe":       {reason: "Through NAT64 too.", want: "a link-local address"},
		"fe80::1":                  {reason: "By IPv6 too.", want: "a link-local address"},
		"fd00:ec2::254":            {reason: "AWS has its own by IPv6.", want: "metadata service"},
		"168.63.129.16":            {reason: "Azure has its own.", want: "metadata service"},
		"100.100.100.200":          {reason: "So has Alibaba Cloud.", want: "metadata service"},
		"0.0.0.0":                  {reason: "It stands for the host itself.", want: "no address of a host"},
		"0.0.0.1":                  {reason: "As does its network.", want: "no address of a host"},
		"::":                       {reason: "By IPv6 too.", want: "no address of a host"},
		"224.0.0.1":                {reason: "Nobody is there.", want: "a multicast address"},
		"ff02::1":                  {reason: "Nor there.", want: "a multicast address"},
		"255.255.255.255":          {reason: "Everybody is there.", want: "a multicast address"},
		"10.96.0.1":                {reason: "The control plane is not a target of itself.", want: "the control plane's own API server"},
		"::ffff:10.96.0.1":         {reason: "However it is written.", want: "the control plane's own API server"},
		"fe80::1%eth0":             {reason: "A zone changes nothing.", want: "a link-local address"},
		"64:ff9b::10.96.0.1":       {reason: "Translation changes nothing.", want: "the control plane's own API server"},
		"64:ff9b::203.0.113.7":     {reason: "What is translated to a good address is good."},
		"2001:db8:169:254:169::25": {reason: "Digits are not an address."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := p.Check(netip.MustParseAddr(name))
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: want %q, have %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestParseAllowed(t *testing.T) {
	got, err := ParseAllowed("spec.allowedTargets", []string{" 127.0.0.1/8 ", "fe80::/10"})
	if err != nil || len(got) != 2 || got[0] != netip.MustParsePrefix("127.0.0.0/8") {
		t.Errorf("have %v, %v", got, err)
	}
	if _, err := ParseAllowed("spec.allowedTargets", []string{"localhost"}); err == nil || !strings.Contains(err.Error(), "spec.allowedTargets") {
		t.Errorf("have %v", err)
	}
}

func TestAddressesOfTheControlPlane(t *testing.T) {
	for server, want := range map[string]string{
		"https://10.96.0.1:443": "10.96.0.1", "10.96.0.1:443": "10.96.0.1", "https://[2001:db8::1]:6443": "2001:db8::1", "10.96.0.1": "10.96.0.1",
	} {
		got, err := Of(t.Context(), server)
		if err != nil || len(got) != 1 || got[0].String() != want {
			t.Errorf("%s: have %v, %v", server, got, err)
		}
	}
}
