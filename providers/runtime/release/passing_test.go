package release

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	helm "helm.sh/helm/v3/pkg/release"
	kerrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// TestALostRequestRollsNothingBack: that a connection broke while Helm upgraded says nothing about the new version.
func TestALostRequestRollsNothingBack(t *testing.T) {
	lost := &url.Error{Op: "Patch", URL: "https://127.0.0.1/", Err: errors.New("stream error")}
	cases := map[string]struct {
		reason   string
		err      error
		attempts int
		want     act
	}{
		"Lost":    {"The upgrade is tried again.", fmt.Errorf("cannot upgrade: %w", lost), 1, deploy},
		"Busy":    {"So it is when the API server is busy.", kerrors.NewTooManyRequestsError("later"), 1, deploy},
		"Often":   {"What never gets through has failed.", lost, passingAttempts, rollback},
		"Refused": {"What the API server refuses has failed.", kerrors.NewBadRequest("no"), 1, rollback},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := sight{
				parameters: parameters("2"), usable: true, now: now,
				history: history{rec(1, helm.StatusDeployed, one), rec(2, helm.StatusFailed, two)},
				last:    &operation{kind: deploying, request: two, err: tc.err, attempts: tc.attempts},
				status:  v1alpha1.ReleaseObservation{Deployed: &v1alpha1.Deployed{Version: "1", Power: steading.PowerRunning, Revision: 1}},
			}
			if have := s.judge(); have.act != tc.want {
				t.Errorf("%s have %+v", tc.reason, have)
			}
		})
	}
}
