package local

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// routeTable as the kernel writes it: a default route, a network, a host, and what a node's wire has.
const routeTable = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
tun0	05B5B40A	00000000	0005	0	0	0	FFFFFFFF	0	0	0
steading190	0000BE0A	02FFBE0A	0003	0	0	0	0000FFFF	0	0	0
`

func TestReadRoutes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "route")
	if err := os.WriteFile(path, []byte(routeTable), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readRoutes(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []route{
		{link: "eth0", to: netip.MustParsePrefix("0.0.0.0/0")},
		{link: "eth0", to: netip.MustParsePrefix("192.0.2.0/24")},
		{link: "tun0", to: netip.MustParsePrefix("10.180.181.5/32")},
		{link: "steading190", to: netip.MustParsePrefix("10.190.0.0/16")},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(route{}), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestSubnetsKeepClearOfRoutes(t *testing.T) {
	routes := []route{
		{link: "eth0", to: netip.MustParsePrefix("0.0.0.0/0")},
		{link: "vpn", to: netip.MustParsePrefix("10.180.3.0/24")},
		{link: "vpn", to: netip.MustParsePrefix("10.184.0.0/13")},
		{link: "steading181", to: netip.MustParsePrefix("10.181.0.0/16")},
		{link: "steading181", to: netip.MustParsePrefix("10.182.0.0/16")},
	}
	cases := map[string]struct {
		n    int
		want bool
	}{
		"a route into it":                    {n: 180, want: true},
		"what its own former node left":      {n: 181, want: false},
		"what another node left":             {n: 182, want: true},
		"only the default route leads to it": {n: 183, want: false},
		"a route around it":                  {n: 185, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (&subnet{n: tc.n}).overlaps(routes); got != tc.want {
				t.Errorf("overlaps: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestTwoNodesHaveTwoSubnets(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	first, err := newSubnet()
	if err != nil {
		t.Fatal(err)
	}
	second, err := newSubnet()
	if err != nil {
		t.Fatal(err)
	}
	defer second.release()
	if first.all() == second.all() {
		t.Errorf("both have %s", first.all())
	}
	first.release()
	third, err := newSubnet()
	if err != nil {
		t.Fatal(err)
	}
	defer third.release()
	if third.all() != first.all() {
		t.Errorf("what was released is not used again: got %s, want %s", third.all(), first.all())
	}
}
