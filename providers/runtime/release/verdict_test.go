package release

import (
	"errors"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	helm "helm.sh/helm/v3/pkg/release"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

func parameters(version string, change ...func(*v1alpha1.ReleaseParameters)) v1alpha1.ReleaseParameters {
	p := v1alpha1.ReleaseParameters{
		Identity: id, Claim: v1alpha1.ClaimReference{Namespace: "tenant-acme", Name: "dev"},
		Context: "platform", Namespace: "acme-dev", ReleaseName: "acme-devops",
		Chart:   v1alpha1.Chart{Repository: "r/charts/runtime", Version: "1.0.0", Digest: "sha256:1"},
		Version: version, Power: steading.PowerRunning,
		Caps: steading.Resources{CPU: resource.MustParse("8"), Memory: resource.MustParse("20480Mi"), Storage: resource.MustParse("40Gi")},
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

// Requests for versions 1 and 2.
var one, two = digest(parameters("1")), digest(parameters("2"))

func rec(revision int64, status helm.Status, request string) record {
	return record{revision: revision, status: status, request: request, identity: id, created: now.Add(-time.Hour)}
}

func TestJudge(t *testing.T) {
	serves := &v1alpha1.Deployed{Version: "1", Power: steading.PowerRunning, Revision: 1}
	failing := &rollout{failing: true, reason: steading.ReasonImagePull, message: "no such image"}
	upgraded := history{rec(1, helm.StatusSuperseded, one), rec(2, helm.StatusDeployed, two)}
	fresh := history{rec(1, helm.StatusSuperseded, one), {revision: 2, status: helm.StatusDeployed, request: two, created: now.Add(-10 * time.Second)}}
	undone := history{rec(1, helm.StatusSuperseded, one), rec(2, helm.StatusSuperseded, two), {revision: 3, status: helm.StatusDeployed, request: one, failed: two}}
	broken := func(err error, attempts int, ago time.Duration) *operation {
		return &operation{kind: deploying, request: two, err: err, attempts: attempts, ended: now.Add(-ago)}
	}
	unrolled := func(err error, ago time.Duration) *operation {
		return &operation{kind: rollingBack, request: two, err: err, attempts: 1, ended: now.Add(-ago)}
	}
	boom, refusal := errors.New("boom"), &refusedError{errors.New("a hook")}

	cases := map[string]struct {
		reason string
		sight  sight
		want   verdict
		says   string
	}{
		"Nothing":           {reason: "what does not exist is installed", want: verdict{act: deploy, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRollingOut}, says: "installing version 2"},
		"Running":           {reason: "an operation in flight is waited for", sight: sight{last: &operation{kind: deploying, running: true}}, want: verdict{state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRollingOut}},
		"NothingNew":        {reason: "which is not told while the Release is new", sight: sight{made: now.Add(-time.Second)}, want: verdict{act: deploy, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRollingOut, quiet: true, again: 3 * time.Second}},
		"NothingTold":       {reason: "unless something else was", sight: sight{made: now, status: v1alpha1.ReleaseObservation{State: v1alpha1.ReleaseFailed}}, want: verdict{act: deploy, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRollingOut}},
		"RunningNew":        {reason: "nor is that it is being installed", sight: sight{made: now, last: &operation{kind: deploying, running: true}}, want: verdict{state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRollingOut, quiet: true, again: quiet}},
		"FailedNew":         {reason: "but that it fails is", sight: sight{made: now, last: broken(boom, 1, time.Second)}, want: verdict{state: v1alpha1.ReleaseDeploying, reason: steading.ReasonDeployFailed, again: 4 * time.Second}, says: "boom"},
		"NoNamespaceNew":    {reason: "nor that its Boundary is being made with it", sight: sight{made: now}, want: verdict{state: v1alpha1.ReleaseDeploying, reason: steading.ReasonWaitingForBoundary, quiet: true, again: quiet}},
		"Upgrade":           {reason: "another request is another deployment", sight: sight{history: history{rec(1, helm.StatusDeployed, one)}, status: v1alpha1.ReleaseObservation{Deployed: serves}}, want: verdict{act: deploy, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRollingOut}, says: "upgrading to version 2"},
		"Deployed":          {reason: "rolled out", sight: sight{history: upgraded, rollout: &rollout{done: true}}, want: verdict{state: v1alpha1.ReleaseDeployed, served: true}},
		"TwoDeployed":       {reason: "what Helm failed to call superseded is called so, and goes on serving meanwhile", sight: sight{history: history{rec(1, helm.StatusDeployed, one), rec(2, helm.StatusDeployed, two)}, rollout: &rollout{done: true}}, want: verdict{act: supersede, state: v1alpha1.ReleaseDeployed, served: true}},
		"TwoDeployedRolls":  {reason: "but not before the last one serves", sight: sight{history: history{rec(1, helm.StatusDeployed, one), rec(2, helm.StatusDeployed, two)}, rollout: &rollout{reason: steading.ReasonRollingOut}}, want: verdict{state: v1alpha1.ReleaseRollingOut, reason: steading.ReasonRollingOut}},
		"Missing":           {reason: "what was deleted behind our back is made anew", sight: sight{history: upgraded, rollout: &rollout{missing: true, reason: steading.ReasonRollingOut, message: "gone"}}, want: verdict{act: deploy, state: v1alpha1.ReleaseRollingOut, reason: steading.ReasonRollingOut}, says: "gone"},
		"MissingRolledBack": {reason: "as it was rolled back to", sight: sight{history: undone, rollout: &rollout{missing: true}, status: v1alpha1.ReleaseObservation{Deployed: serves}}, want: verdict{act: rollback, to: 3, state: v1alpha1.ReleaseRolledBack, reason: steading.ReasonRolledBack, failed: two}},
		"RollingOut":        {reason: "not rolled out yet", sight: sight{history: upgraded, rollout: &rollout{reason: steading.ReasonRollingOut, message: "0 of 1"}}, want: verdict{state: v1alpha1.ReleaseRollingOut, reason: steading.ReasonRollingOut}, says: "0 of 1"},
		"RollingOutFresh":   {reason: "which is not told while it is fresh", sight: sight{history: fresh, rollout: &rollout{reason: steading.ReasonRollingOut}, status: v1alpha1.ReleaseObservation{State: v1alpha1.ReleaseDeploying}, now: now.Add(-8 * time.Second)}, want: verdict{state: v1alpha1.ReleaseRollingOut, reason: steading.ReasonRollingOut, quiet: true, again: 2 * time.Second}},
		"FailingFresh":      {reason: "unless it fails", sight: sight{history: fresh, rollout: failing, status: v1alpha1.ReleaseObservation{State: v1alpha1.ReleaseDeploying}, now: now.Add(-8 * time.Second)}, want: verdict{state: v1alpha1.ReleaseFailed, reason: steading.ReasonImagePull}},
		"Interrupted":       {reason: "a pending record of nobody's is repaired", sight: sight{history: history{rec(1, helm.StatusPendingInstall, two)}}, want: verdict{act: deploy, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRollingOut}},
		"InterruptedUp":     {reason: "of an upgrade, too", sight: sight{history: history{rec(1, helm.StatusSuperseded, one), rec(2, helm.StatusPendingUpgrade, two)}}, want: verdict{act: deploy, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRollingOut}},
		"NoNamespace":       {reason: "it waits for the Boundary", sight: sight{usable: false, foreign: boom}, want: verdict{state: v1alpha1.ReleaseDeploying, reason: steading.ReasonWaitingForBoundary}},
		"Foreign":           {reason: "another's release is left alone", sight: sight{foreign: boom, history: upgraded}, want: verdict{state: v1alpha1.ReleaseFailed, reason: steading.ReasonForeignRelease}, says: "boom"},
		"InstallFailing":    {reason: "a first rollout that fails is said at once, and there is nothing to go back to", sight: sight{history: history{rec(1, helm.StatusDeployed, two)}, rollout: failing}, want: verdict{state: v1alpha1.ReleaseFailed, reason: steading.ReasonImagePull}, says: "no such image"},
		"UpgradeFailing":    {reason: "an upgrade that fails is said at once, and given time", sight: sight{history: fresh, rollout: failing, status: v1alpha1.ReleaseObservation{Deployed: serves}}, want: verdict{state: v1alpha1.ReleaseFailed, reason: steading.ReasonImagePull, again: 50 * time.Second}, says: "no such image"},
		"UpgradeFailed":     {reason: "and then rolled back", sight: sight{history: upgraded, rollout: failing, status: v1alpha1.ReleaseObservation{Deployed: serves}}, want: verdict{act: rollback, to: 1, failed: two, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRolledBack}, says: "version 2 failed and was rolled back to version 1: ImagePull: no such image"},
		"StartFailing":      {reason: "what was stopped is not stopped again, but goes on trying", sight: sight{history: upgraded, rollout: failing, status: v1alpha1.ReleaseObservation{Deployed: &v1alpha1.Deployed{Version: "1", Power: steading.PowerStopped, Revision: 1}}}, want: verdict{state: v1alpha1.ReleaseFailed, reason: steading.ReasonImagePull}, says: "no such image"},
		"UpgradeUnrolled":   {reason: "what merely takes time is not", sight: sight{history: upgraded, rollout: &rollout{reason: steading.ReasonRollingOut}, status: v1alpha1.ReleaseObservation{Deployed: serves}}, want: verdict{state: v1alpha1.ReleaseRollingOut, reason: steading.ReasonRollingOut}},
		"AnewAndCrashes": {
			reason: "what never served since it was installed anew is nothing to go back to",
			sight:  sight{history: upgraded, rollout: failing, status: v1alpha1.ReleaseObservation{Deployed: &v1alpha1.Deployed{Version: "1", Power: steading.PowerRunning, Revision: 1, Made: &metav1.Time{Time: now.Add(-48 * time.Hour)}}}},
			want:   verdict{state: v1alpha1.ReleaseFailed, reason: steading.ReasonImagePull},
		},
		"ServedAndCrashes": {
			reason: "what served once and fails later is no failed upgrade",
			sight:  sight{history: upgraded, rollout: failing, status: v1alpha1.ReleaseObservation{Deployed: &v1alpha1.Deployed{Version: "2", Revision: 2}}},
			want:   verdict{state: v1alpha1.ReleaseFailed, reason: steading.ReasonImagePull},
		},
		"RolledBack":       {reason: "what was rolled back is not tried again", sight: sight{history: undone, rollout: &rollout{done: true}, status: v1alpha1.ReleaseObservation{Deployed: serves, FailedRequest: two, Message: "as was said"}}, want: verdict{state: v1alpha1.ReleaseRolledBack, reason: steading.ReasonRolledBack, failed: two, served: true}, says: "as was said"},
		"RolledBackForgot": {reason: "not even if the status was lost", sight: sight{history: undone, rollout: &rollout{done: true}}, want: verdict{state: v1alpha1.ReleaseRolledBack, reason: steading.ReasonRolledBack, failed: two, served: true}, says: "version 2 failed and was rolled back"},
		"NewAfterRollback": {reason: "another request is", sight: sight{parameters: parameters("3"), history: undone, status: v1alpha1.ReleaseObservation{Deployed: serves, FailedRequest: two}}, want: verdict{act: deploy, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRollingOut}},
		"HelmFailedUpgrade": {
			reason: "an upgrade that Helm could not do is rolled back at once",
			sight:  sight{history: history{rec(1, helm.StatusDeployed, one), rec(2, helm.StatusFailed, two)}, last: broken(boom, 1, 0), status: v1alpha1.ReleaseObservation{Deployed: serves}},
			want:   verdict{act: rollback, to: 1, failed: two, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRolledBack}, says: "DeployFailed: boom",
		},
		"HelmFailedInstall": {reason: "an install that Helm could not do is tried again, later", sight: sight{history: history{rec(1, helm.StatusFailed, two)}, last: broken(boom, 1, time.Second)}, want: verdict{state: v1alpha1.ReleaseDeploying, reason: steading.ReasonDeployFailed, again: 4 * time.Second}, says: "boom"},
		"HelmFailedDue":     {reason: "now", sight: sight{history: history{rec(1, helm.StatusFailed, two)}, last: broken(boom, 1, time.Minute)}, want: verdict{act: deploy, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonDeployFailed}},
		"HelmFailedOften":   {reason: "after a few times it is a failure", sight: sight{last: broken(boom, 3, 0)}, want: verdict{state: v1alpha1.ReleaseFailed, reason: steading.ReasonDeployFailed, again: 20 * time.Second}},
		"Refused":           {reason: "what may not be deployed fails", sight: sight{last: broken(refusal, 1, 0)}, want: verdict{state: v1alpha1.ReleaseFailed, reason: steading.ReasonChartRefused, again: refusedRetry}, says: "a hook"},
		"RefusedUpgrade":    {reason: "and what serves goes on", sight: sight{history: history{rec(1, helm.StatusDeployed, one)}, last: broken(refusal, 1, 0), status: v1alpha1.ReleaseObservation{Deployed: serves}}, want: verdict{state: v1alpha1.ReleaseRolledBack, reason: steading.ReasonChartRefused, again: refusedRetry}, says: "version 1 goes on serving"},
		"RefusedThenNew":    {reason: "another request is tried at once", sight: sight{parameters: parameters("3"), last: broken(refusal, 1, 0)}, want: verdict{act: deploy, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRollingOut}},
		"RollbackFailed":    {reason: "a rollback that failed is tried again, later, and the request is not", sight: sight{history: history{rec(1, helm.StatusDeployed, one), rec(2, helm.StatusFailed, two), {revision: 3, status: helm.StatusFailed, request: one, failed: two}}, last: &operation{kind: rollingBack, request: two, err: boom, attempts: 1, ended: now}, status: v1alpha1.ReleaseObservation{Deployed: serves, FailedRequest: two, Message: "as was said"}}, want: verdict{to: 1, state: v1alpha1.ReleaseRolledBack, reason: steading.ReasonRolledBack, failed: two, again: firstRetry}},
		"RollbackUnbegun": {
			reason: "so is one that failed before Helm recorded it, and both failures are said",
			sight:  sight{history: history{rec(1, helm.StatusDeployed, one), rec(2, helm.StatusFailed, two)}, last: unrolled(boom, 0), status: v1alpha1.ReleaseObservation{Deployed: serves, FailedRequest: two, Message: "as was said" + rollbackFailed + "something else"}},
			want:   verdict{to: 1, failed: two, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRolledBack, again: firstRetry}, says: "as was said; the rollback failed, and is tried again: boom",
		},
		"RollbackUnbegunDue": {
			reason: "when it is due",
			sight:  sight{history: history{rec(1, helm.StatusDeployed, one), rec(2, helm.StatusFailed, two)}, last: unrolled(boom, firstRetry), status: v1alpha1.ReleaseObservation{Deployed: serves}},
			want:   verdict{act: rollback, to: 1, failed: two, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRolledBack}, says: "boom",
		},
		"RollbackOfRollout": {
			reason: "so is that of a rollout",
			sight:  sight{history: upgraded, rollout: failing, last: unrolled(boom, 0), status: v1alpha1.ReleaseObservation{Deployed: serves, FailedRequest: two}},
			want:   verdict{to: 1, failed: two, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRolledBack, again: firstRetry}, says: "ImagePull: no such image. Change version, size or state to try again; the rollback failed, and is tried again: boom",
		},
		"RollbackOfMissing": {
			reason: "so is what was rolled back to and is gone",
			sight:  sight{history: undone, rollout: &rollout{missing: true}, last: unrolled(boom, 0), status: v1alpha1.ReleaseObservation{Deployed: serves}},
			want:   verdict{to: 3, failed: two, state: v1alpha1.ReleaseRolledBack, reason: steading.ReasonRolledBack, again: firstRetry}, says: "boom",
		},
		"RollbackKilled": {
			reason: "a rollback that was killed is done again, and not the request that failed",
			sight:  sight{history: history{rec(1, helm.StatusDeployed, one), rec(2, helm.StatusFailed, two), {revision: 3, status: helm.StatusPendingUpgrade, request: one, failed: two}}, status: v1alpha1.ReleaseObservation{Deployed: serves}},
			want:   verdict{act: rollback, to: 1, failed: two, state: v1alpha1.ReleaseRolledBack, reason: steading.ReasonRolledBack},
		},
		"MissingAgain": {
			reason: "what is gone and cannot be made anew is tried again, later",
			sight:  sight{history: upgraded, rollout: &rollout{missing: true, reason: steading.ReasonRollingOut}, last: broken(boom, 1, 0), status: v1alpha1.ReleaseObservation{Deployed: serves}},
			want:   verdict{state: v1alpha1.ReleaseDeploying, reason: steading.ReasonDeployFailed, again: firstRetry}, says: "boom",
		},
		"InterruptedAgain": {
			reason: "so is a pending record that cannot be repaired",
			sight:  sight{history: history{rec(1, helm.StatusDeployed, one), rec(2, helm.StatusPendingUpgrade, two)}, last: broken(boom, 1, 0), status: v1alpha1.ReleaseObservation{Deployed: serves}},
			want:   verdict{state: v1alpha1.ReleaseDeploying, reason: steading.ReasonDeployFailed, again: firstRetry}, says: "boom",
		},
		"RollbackInterrupted": {reason: "a rollback that died is done again", sight: sight{history: history{rec(1, helm.StatusDeployed, one), {revision: 2, status: helm.StatusFailed, request: one, failed: two}}, status: v1alpha1.ReleaseObservation{Deployed: serves}}, want: verdict{act: rollback, to: 1, state: v1alpha1.ReleaseRolledBack, reason: steading.ReasonRolledBack, failed: two}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.sight
			if s.parameters.Version == "" {
				s.parameters = parameters("2")
			}
			s.usable = !strings.HasPrefix(name, "NoNamespace")
			if s.rollbackAfter = time.Minute; s.now.IsZero() {
				s.now = now
			}
			got := s.judge()
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(verdict{}), cmpopts.IgnoreFields(verdict{}, "message")); diff != "" {
				t.Errorf("%s: -want +got\n%s%s", tc.reason, diff, got.message)
			}
			if !strings.Contains(got.message, tc.says) {
				t.Errorf("%s: got message %q, want %q in it", tc.reason, got.message, tc.says)
			}
			if (got.state != v1alpha1.ReleaseDeployed) != (got.reason != xpv2.ConditionReason("")) {
				t.Errorf("%s: state %s has reason %q: every state but Deployed has one", tc.reason, got.state, got.reason)
			}
		})
	}
}

// TestRollbackThatWorkedAtLast: that it failed before is said no longer.
func TestRollbackThatWorkedAtLast(t *testing.T) {
	v := sight{
		parameters: parameters("2"), usable: true, now: now, rollout: &rollout{done: true},
		history: history{rec(1, helm.StatusSuperseded, one), {revision: 3, status: helm.StatusDeployed, request: one, failed: two}},
		status:  v1alpha1.ReleaseObservation{FailedRequest: two, Message: "as was said" + rollbackFailed + "boom"},
	}.judge()
	if v.message != "as was said" || !v.served {
		t.Errorf("got %+v", v)
	}
}

func TestDigest(t *testing.T) {
	same := map[string]func(*v1alpha1.ReleaseParameters){
		"Quantity":   func(p *v1alpha1.ReleaseParameters) { p.Caps.Memory = resource.MustParse("20Gi") },
		"ChartName":  func(p *v1alpha1.ReleaseParameters) { p.Chart.Repository, p.Chart.Version = "mirror/runtime", "1.0.1" },
		"Operations": func(p *v1alpha1.ReleaseParameters) { p.Operations = true },
		"Claim":      func(p *v1alpha1.ReleaseParameters) { p.Claim.Name = "other" },
	}
	differs := map[string]func(*v1alpha1.ReleaseParameters){
		"Version":  func(p *v1alpha1.ReleaseParameters) { p.Version = "2" },
		"Chart":    func(p *v1alpha1.ReleaseParameters) { p.Chart.Digest = "sha256:2" },
		"Power":    func(p *v1alpha1.ReleaseParameters) { p.Power = steading.PowerStopped },
		"Caps":     func(p *v1alpha1.ReleaseParameters) { p.Caps.CPU = resource.MustParse("9") },
		"Docker":   func(p *v1alpha1.ReleaseParameters) { p.Docker = true },
		"Registry": func(p *v1alpha1.ReleaseParameters) { p.Registry = &steading.Registry{Prefix: "ghcr.io/acme"} },
		"PullSecret": func(p *v1alpha1.ReleaseParameters) {
			p.Registry = &steading.Registry{Prefix: "", PullSecretRef: &steading.LocalSecretReference{Name: "s"}}
		},
		"Values": func(p *v1alpha1.ReleaseParameters) { p.Values = &apiextensionsv1.JSON{Raw: []byte(`{"a":1}`)} },
		"UID":    func(p *v1alpha1.ReleaseParameters) { p.Identity.UID = "uid-2" },
	}
	for name, change := range same {
		if digest(parameters("1", change)) != one {
			t.Errorf("%s makes another request; it must not redeploy anybody", name)
		}
	}
	seen := map[string]string{one: "none"}
	for name, change := range differs {
		d := digest(parameters("1", change))
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s make the same request", name, other)
		}
		seen[d] = name
	}
}

// TestDigestIsForEver: another digest for the same request would redeploy every environment there is.
func TestDigestIsForEver(t *testing.T) {
	if diff := cmp.Diff("2a23ef500c1bfa2e43b762f89a2682c8", one); diff != "" {
		t.Error(diff)
	}
}

func TestValues(t *testing.T) {
	p := parameters("1", func(p *v1alpha1.ReleaseParameters) {
		p.Power = steading.PowerStopped
		p.Registry = &steading.Registry{Prefix: "ghcr.io/acme", PullSecretRef: &steading.LocalSecretReference{Name: "acme-pull"}}
		p.Values = &apiextensionsv1.JSON{Raw: []byte(`{"home":{"size":"4Gi"},"docker":{"image":"d"}}`)}
	})
	got, err := values(p, "ghcr.io/acme/acme-devops:1")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"tenant": "acme", "environment": "dev", "namespace": "acme-dev", "version": "1", "image": "ghcr.io/acme/acme-devops:1", "stopped": true,
		"docker":           map[string]any{"enabled": false, "image": "d"},
		"caps":             map[string]any{"cpu": "8", "memory": "20Gi", "storage": "40Gi"},
		"imagePullSecrets": []any{map[string]any{"name": "steading-pull"}},
		"home":             map[string]any{"size": "4Gi"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
