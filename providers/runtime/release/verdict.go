package release

import (
	"errors"
	"fmt"
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	helm "helm.sh/helm/v3/pkg/release"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// An act is what is to be done about a release.
type act int

// Acts.
const (
	nothing act = iota
	deploy
	rollback
	supersede
)

// A sight is all that a verdict is made of.
type sight struct {
	parameters v1alpha1.ReleaseParameters
	// from are the versions of what a component's values come from.
	from []string
	// status before.
	status v1alpha1.ReleaseObservation
	// made is when the Release was.
	made time.Time
	// usable is whether there is a namespace to deploy into.
	usable bool
	// foreign says whose the release is, when it is not ours.
	foreign error
	history history
	last    *operation
	// rollout of the last revision; nil while there is none that Helm calls deployed.
	rollout *rollout
	// rollbackAfter is how long a rollout may fail before it is rolled back.
	rollbackAfter time.Duration
	now           time.Time
}

// A verdict is what is true of a release, and what is to be done.
type verdict struct {
	act act
	// uninstall it.
	uninstall bool
	// to is the revision to roll back to.
	to int64

	state   v1alpha1.ReleaseState
	reason  xpv2.ConditionReason
	message string
	// failed is the request that is not tried again.
	failed string
	// served is whether the last revision serves as it should.
	served bool
	// again is when to look again even if nothing changes. Zero: when the poll is due.
	again time.Duration
	// quiet verdicts are not told: in a moment there will be a better one.
	quiet bool
}

// quiet is how long a new Release, and a rollout, is given before it is told that it is under way: most are done by then, and
// what is told is paid for up to the claim.
const quiet = 4 * time.Second

// want is the digest of the request.
func (s sight) want() string { return digest(s.parameters, s.from...) }

// judge comes to a verdict. It looks at nothing else and does nothing.
func (s sight) judge() verdict {
	v := s.judgeAloud()
	if v.served && v.act == nothing && len(s.history.stale()) > 0 {
		v.act = supersede
	}
	left := s.made.Add(quiet).Sub(s.now)
	if s.status.State == "" && left > 0 && v.state == v1alpha1.ReleaseDeploying && v.reason != steading.ReasonDeployFailed {
		v.quiet = true
		if v.again == 0 {
			v.again = left
		}
	}
	return v
}

// judgeAloud comes to a verdict, whether it is worth telling or not.
func (s sight) judgeAloud() verdict {
	want, last := s.want(), s.history.last()
	switch {
	case s.last != nil && s.last.running:
		return s.running()
	case !s.usable:
		return verdict{state: v1alpha1.ReleaseDeploying, reason: steading.ReasonWaitingForBoundary,
			message: fmt.Sprintf("namespace %s does not stand yet", s.parameters.Namespace)}
	case s.foreign != nil:
		return verdict{state: v1alpha1.ReleaseFailed, reason: steading.ReasonForeignRelease, message: s.foreign.Error()}
	case s.last.failed(deploying, want) && (last == nil || last.request != want || last.pending() || s.last.passing() || s.history.good(s.status.Deployed) == nil):
		return s.deployAgain()
	case last == nil, last.status == helm.StatusUninstalling, last.status == helm.StatusUninstalled:
		return s.deployNow()
	case last.failed == want:
		return s.rolledBack(*last)
	case last.pending(), last.request != want:
		return s.deployNow()
	case last.status == helm.StatusFailed:
		if good := s.history.good(s.status.Deployed); good != nil {
			return s.rollbackNow(*good, steading.ReasonDeployFailed, s.whyFailed())
		}
		return s.deployNow()
	case s.rollout == nil:
		return verdict{state: v1alpha1.ReleaseRollingOut, reason: steading.ReasonRollingOut}
	default:
		return s.rollingOut(*last)
	}
}

// running says what the operation in flight is doing. What failed before a rollback stays said.
func (s sight) running() verdict {
	v := verdict{state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRollingOut, failed: s.status.FailedRequest}
	if s.last.kind == rollingBack {
		v.reason, v.message = steading.ReasonRolledBack, s.status.Message
	} else {
		v.message = s.deployMessage()
	}
	return v
}

func (s sight) deployMessage() string {
	if s.status.Deployed == nil {
		return "installing version " + versionOf(s.parameters)
	}
	return "upgrading to version " + versionOf(s.parameters)
}

func (s sight) deployNow() verdict {
	return verdict{act: deploy, state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRollingOut, message: s.deployMessage()}
}

// deployAgain after it failed, but not at once. What serves goes on serving.
func (s sight) deployAgain() verdict {
	v := s.deployNow()
	v.reason, v.message = steading.ReasonDeployFailed, s.whyFailed()
	switch {
	case errors.As(s.last.err, new(*valuesError)):
		v.reason = steading.ReasonValuesUnusable
	case s.last.refused():
		v.reason = steading.ReasonChartRefused
	}
	serving := s.status.Deployed != nil
	switch {
	case serving && s.last.refused():
		v.state = v1alpha1.ReleaseRolledBack
		v.message += fmt.Sprintf("; version %s goes on serving", s.status.Deployed.Version)
	case !serving && (s.last.refused() || s.last.attempts >= 3):
		v.state = v1alpha1.ReleaseFailed
	}
	return v.after(s.last.retry(s.now))
}

// after is the verdict while there is still to be waited.
func (v verdict) after(wait time.Duration) verdict {
	if wait > 0 {
		v.act, v.again = nothing, wait
	}
	return v
}

func (s sight) whyFailed() string {
	if s.last == nil || s.last.err == nil {
		return "Helm was interrupted or failed"
	}
	return kit.CleanMessage(s.last.err.Error())
}

func (s sight) rollbackNow(to record, reason xpv2.ConditionReason, why string) verdict {
	return s.rollbackAgain(verdict{
		act: rollback, to: to.revision, failed: s.want(),
		state: v1alpha1.ReleaseDeploying, reason: steading.ReasonRolledBack,
		message: s.rollbackMessage(fmt.Sprintf("%s: %s", reason, why)),
	})
}

// rollbackFailed comes between what failed and why it could not be rolled back.
const rollbackFailed = "; the rollback failed, and is tried again: "

// rollbackAgain after it failed, if it did, but not at once. What failed before it stays said.
func (s sight) rollbackAgain(v verdict) verdict {
	if !s.last.failed(rollingBack, v.failed) {
		return v
	}
	if said := s.saidFailed(); said != "" {
		v.message = said
	}
	v.message += rollbackFailed + s.whyFailed()
	return v.after(s.last.retry(s.now))
}

// saidFailed is what was said of how the request failed, without what was said of its rollback. Empty: nothing was.
func (s sight) saidFailed() string {
	if s.status.FailedRequest != s.want() {
		return ""
	}
	said, _, _ := strings.Cut(s.status.Message, rollbackFailed)
	return said
}

func (s sight) rollbackMessage(why string) string {
	to := "the version before"
	if s.status.Deployed != nil {
		to = "version " + s.status.Deployed.Version
	}
	change := "version, size or state"
	if s.parameters.Component != nil {
		change = "version, values or state"
	}
	return fmt.Sprintf("version %s failed and was rolled back to %s: %s. Change %s to try again", versionOf(s.parameters), to, why, change)
}

// rolledBack is where the request asked for was tried, failed, and was undone.
func (s sight) rolledBack(last record) verdict {
	want := s.want()
	v := verdict{state: v1alpha1.ReleaseRolledBack, reason: steading.ReasonRolledBack, failed: want, message: s.saidFailed()}
	if v.message == "" {
		v.message = s.rollbackMessage("see the events")
	}
	if last.status == helm.StatusFailed || last.pending() {
		good := s.history.good(s.status.Deployed)
		if good == nil {
			v.state = v1alpha1.ReleaseFailed
			return v
		}
		v.act, v.to = rollback, good.revision
		return s.rollbackAgain(v)
	}
	if s.rollout != nil && s.rollout.missing {
		v.act, v.to = rollback, last.revision
		return s.rollbackAgain(v)
	}
	v.served = s.rollout != nil && s.rollout.done
	return v
}

// since when the last revision rolls out: by our own clock, or by the cluster's when another process deployed it.
func (s sight) since(last record) time.Time {
	if s.last != nil && s.last.kind == deploying && s.last.request == last.request {
		return s.last.ended
	}
	return last.created
}

// rollingOut is where Helm is done with the request asked for, and the workloads may not be.
func (s sight) rollingOut(last record) verdict {
	r := *s.rollout
	if r.done {
		return verdict{state: v1alpha1.ReleaseDeployed, served: true}
	}
	v := verdict{state: v1alpha1.ReleaseRollingOut, reason: r.reason, message: r.message, again: r.settled}
	if r.missing {
		if s.last.failed(deploying, s.want()) {
			return s.deployAgain()
		}
		v.act = deploy
		return v
	}
	if left := s.since(last).Add(quiet).Sub(s.now); r.reason == steading.ReasonRollingOut && (s.status.State == v1alpha1.ReleaseDeploying || s.status.State == "") && left > 0 {
		v.quiet, v.again = true, left
	}
	if !r.failing {
		return v
	}
	v.state = v1alpha1.ReleaseFailed
	good := s.history.good(s.status.Deployed)
	if d := s.status.Deployed; good == nil || last.serves(d) || (d != nil && d.Power == steading.PowerStopped) {
		// There is nothing to go back to that would serve: what was stopped goes on trying to start.
		return v
	}
	if left := s.since(last).Add(s.rollbackAfter).Sub(s.now); left > 0 {
		v.again = left
		return v
	}
	return s.rollbackNow(*good, r.reason, r.message)
}
