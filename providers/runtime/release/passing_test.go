package release

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	helm "helm.sh/helm/v3/pkg/release"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

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

// TestHelmsTextHidesNoLostRequest: Helm makes one text of the errors of an upgrade's requests.
func TestHelmsTextHidesNoLostRequest(t *testing.T) {
	cases := map[string]struct {
		reason string
		serve  http.HandlerFunc
		want   bool
	}{
		"CutOff": {"The connection broke before the answer.", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		"BrokenOff": {"It broke within the answer.", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		}, true},
		"Busy":    {"The API server is overloaded.", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, true},
		"Refused": {"The API server refuses.", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, false},
		"Fine":    {"Something else went wrong.", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(tc.serve)
			defer srv.Close()
			w := &witness{}
			c, err := rest.HTTPClientFor(w.of(&rest.Config{Host: srv.URL}))
			if err != nil {
				t.Fatal(err)
			}
			if rsp, err := c.Get(srv.URL); err == nil {
				_, _ = io.ReadAll(rsp.Body)
				_ = rsp.Body.Close()
			}
			op := &operation{kind: deploying, err: fmt.Errorf("cannot upgrade: %w", w.judge(errors.New("text"))), attempts: 1}
			if have := op.passing(); have != tc.want {
				t.Errorf("%s have %t", tc.reason, have)
			}
		})
	}
}
