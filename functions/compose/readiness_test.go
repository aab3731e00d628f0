package compose

import (
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

func TestIsReady(t *testing.T) {
	cases := map[string]struct {
		reason     string
		condition  xpv2.Condition
		generation int64
		want       bool
	}{
		"Ready":      {"It is ready for what it is asked for.", xpv2.Available().WithObservedGeneration(2), 2, true},
		"Older":      {"What was ready for an older spec may not be for this one.", xpv2.Available().WithObservedGeneration(1), 2, false},
		"Generation": {"A controller that does not say of which generation is taken at its word.", xpv2.Available(), 2, true},
		"NotReady":   {"It says that it is not.", xpv2.Creating().WithObservedGeneration(2), 2, false},
		"Silent":     {"It says nothing.", xpv2.Condition{Type: xpv2.TypeSynced, Status: "True"}, 2, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mr := &runtimev1.Boundary{}
			mr.Generation = tc.generation
			mr.SetConditions(tc.condition)
			if have := IsReady(mr); have != tc.want {
				t.Errorf("%s have %t, want %t", tc.reason, have, tc.want)
			}
		})
	}
}
