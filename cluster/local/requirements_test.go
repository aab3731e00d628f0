package local

import "testing"

func TestIsDebian12(t *testing.T) {
	cases := map[string]struct {
		release string
		want    bool
	}{
		"debian 12": {release: "NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\n", want: true},
		"debian 13": {release: "VERSION_ID=\"13\"\nID=debian\n", want: false},
		"another":   {release: "VERSION_ID=\"12\"\nID=other\nID_LIKE=debian\n", want: false},
		"nothing":   {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isDebian12(tc.release); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
