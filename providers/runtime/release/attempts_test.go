package release

import (
	"errors"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
)

const extra = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n"

// manifestOf a revision.
func (e *helmEngine) manifestOf(t *testing.T, revision int) string {
	t.Helper()
	r, err := e.cfg.Releases.Get(e.name, revision)
	must(t, err)
	return r.Manifest
}

// TestNothingIsLeftOfWhatFailed: what Helm compares with names what a revision that failed may have made, so that the next one
// takes it away, and what is gone back to stays as it was.
func TestNothingIsLeftOfWhatFailed(t *testing.T) {
	back := func(e *helmEngine) error {
		return e.rollback(1, map[string]string{labelRequest: "r:1", labelFailed: "r:2"}, "r:2 failed")
	}
	with := func(more ...string) func(*helmEngine) error {
		return func(e *helmEngine) error {
			return e.deploy(t.Context(), of("r:2", append([]string{configMap}, more...)...))
		}
	}
	killed := func(e *helmEngine) error {
		return errors.Join(errors.New("killed"), e.cfg.Releases.Create(&helm.Release{
			Name: e.name, Namespace: e.namespace, Version: 1, Info: &helm.Info{Status: helm.StatusPendingInstall},
			Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "runtime"}}, Manifest: extra,
		}))
	}
	cases := map[string]struct {
		reason string
		// install first.
		install bool
		// tries fail, one after the other.
		tries []func(e *helmEngine) error
		do    func(e *helmEngine) error
	}{
		"Rollback": {reason: "a rollback", install: true, do: back, tries: []func(*helmEngine) error{with(extra)}},
		"Again": {
			reason: "a rollback after others that failed", install: true, do: back,
			tries: []func(*helmEngine) error{with(extra), back, back, back, back},
		},
		"Other":       {reason: "another upgrade", install: true, do: with(), tries: []func(*helmEngine) error{with(extra)}},
		"OtherOthers": {reason: "one after several", install: true, do: with(), tries: []func(*helmEngine) error{with(extra), with(), with(), with()}},
		"First":       {reason: "what was killed while it was installed, and changed", do: with(), tries: []func(*helmEngine) error{killed, with(), with(), with()}},
		"Uninstall":   {reason: "taking down", install: true, do: (*helmEngine).uninstall, tries: []func(*helmEngine) error{with(extra), with()}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, kc := newEngine()
			first := ""
			if tc.install {
				must(t, e.deploy(t.Context(), of("r:1", configMap)))
				first = e.manifestOf(t, 1)
			}
			kc.UpdateError = errors.New("refused")
			for _, try := range tc.tries {
				if err := try(e); err == nil {
					t.Fatal("what the cluster refuses does not fail")
				}
			}
			kc.UpdateError = nil
			if tc.install && e.manifestOf(t, 1) != first {
				t.Errorf("%s: what is gone back to is now\n%s", tc.reason, e.manifestOf(t, 1))
			}
			built := &builds{Interface: e.cfg.KubeClient}
			e.cfg.KubeClient = built
			must(t, tc.do(e))
			if was := built.with(t, "name: extra"); !strings.Contains(was, "name: a\n") {
				t.Errorf("%s: Helm knows nothing of the rest:\n%s", tc.reason, was)
			}
			if last, err := e.cfg.Releases.Last(e.name); err == nil && (strings.Contains(last.Manifest, "name: extra") || last.Info.Status != helm.StatusDeployed) {
				t.Errorf("%s: what is there now is %s\n%s", tc.reason, last.Info.Status, last.Manifest)
			}
		})
	}
}
