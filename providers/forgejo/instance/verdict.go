package instance

import (
	"fmt"
	"time"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/forgejo/child"
)

const (
	// grace is how long what runs gets to end by itself, and what was reported to be told: Forgejo says that a runner is
	// active for ten seconds after it last reported.
	grace = 10 * time.Second
	// apart are two readings of an idle runner that may be drained: within a second of taking a job it says that it is idle.
	apart = 12 * time.Second
)

// A sight is all that a verdict is made of.
type sight struct {
	now, created time.Time
	// state on the server, as it was just told. Empty: it is not known.
	state v1alpha1.ForgejoState
	// online and active are whether the server ever said so, and job when it said first that it is active.
	online, active bool
	job            time.Time
	child          child.State
	// credentialsLost is whether the Secret is gone that a child which starts is to read.
	credentialsLost bool
	// drain is whether the pool does not want the runner any more.
	drain bool
	// goneFor, endedFor and idleFor are for how long the registration was seen to be gone, the runner to have ended, and, by
	// two answers of the server or more, to have no job.
	goneFor, endedFor, idleFor time.Duration
	// startup and lifetime are how long a runner may take to be heard of, and live without a job, and then with it.
	startup, lifetime time.Duration
	// excused is until when the server, which was away, may not have heard of a runner that started well. Zero: it was not.
	excused time.Time
}

// A verdict says what became of a runner. Without a reason there is none.
type verdict struct {
	reason  v1alpha1.RunnerReason
	message string
	// free is whether it goes for a runner without a job only, and it has to be certain that it has none.
	free bool
	// again is when it has to be looked at again at the latest, when there is no verdict.
	again time.Duration
}

// phase of a verdict.
func (v verdict) phase() v1alpha1.RunnerPhase {
	switch v.reason {
	case "":
		return v1alpha1.RunnerPending
	case v1alpha1.RunnerConsumed, v1alpha1.Drained, v1alpha1.JobGone:
		return v1alpha1.RunnerCompleted
	default:
		return v1alpha1.RunnerFailed
	}
}

// judge a runner. The first that applies counts.
func (s sight) judge() verdict {
	for _, rule := range []func(sight) (verdict, bool){sight.gone, sight.ended, sight.tooOld, sight.neverStarted, sight.drained} {
		if v, ok := rule(s); ok {
			return v
		}
	}
	return verdict{again: s.deadline()}
}

// gone registrations were consumed, unless nobody was ever there to.
func (s sight) gone() (verdict, bool) {
	switch {
	case s.state != v1alpha1.StateGone:
		return verdict{}, false
	case s.online || s.child.ExitedZero:
		return verdict{reason: v1alpha1.RunnerConsumed, message: "it took a job and reported it"}, true
	case s.child.Phase != child.Ended && s.child.Phase != child.Missing && s.goneFor < grace:
		// Its job may have been so short that nobody saw it online. Then it ends well in a moment.
		return verdict{again: grace - s.goneFor}, true
	default:
		return verdict{reason: v1alpha1.RegistrationLost, message: explain("its registration was deleted before the server had ever heard of it", s.child.Message)}, true
	}
}

// ended runners that the server still lists have reported nothing.
func (s sight) ended() (verdict, bool) {
	switch {
	case s.child.Phase != child.Ended && s.child.Phase != child.Missing, s.state == "":
		return verdict{}, false
	case !s.active && s.drain:
		return verdict{reason: v1alpha1.Drained, message: "it ended without a job when its pool did not want it any more", free: true}, true
	case !s.active:
		return verdict{reason: v1alpha1.RunnerExited, message: explain("it ended without having reported a job", s.ending())}, true
	case s.endedFor < grace:
		return verdict{again: grace - s.endedFor}, true
	default:
		return verdict{reason: v1alpha1.RunnerLost, message: explain("it ended with a job in hand", s.ending())}, true
	}
}

// excused by what became of the job that the runner was made for.
func (v verdict) excused(job int64, status api.JobStatus) verdict {
	switch status {
	case api.JobWaiting:
		return v
	case api.JobRunning:
		return verdict{reason: v1alpha1.JobGone, message: fmt.Sprintf("job %d was taken by another runner before this one could", job)}
	default:
		return verdict{reason: v1alpha1.JobGone, message: fmt.Sprintf("job %d was cancelled, or another runner was through with it, before this one could take it", job)}
	}
}

func (s sight) ending() string {
	if s.child.Phase == child.Missing {
		return "what it ran in was deleted"
	}
	return s.child.Message
}

// tooOld runners are wedged. One without a job may have taken one a moment ago, and is drained, if that is ever certain.
func (s sight) tooOld() (verdict, bool) {
	switch {
	case s.state == "":
		return verdict{}, false
	case s.active && s.now.Sub(s.job) >= s.lifetime:
		return verdict{reason: v1alpha1.JobTimeout, message: fmt.Sprintf("it had its job for longer than jobTimeoutSeconds, %d", seconds(s.lifetime))}, true
	case s.active, !s.expired(), s.drain && s.idle():
		return verdict{}, false
	case s.idle(), s.age() >= mostLives*s.lifetime:
		msg := fmt.Sprintf("it lived longer than jobTimeoutSeconds, %d, without a job", seconds(s.lifetime))
		return verdict{reason: v1alpha1.JobTimeout, message: msg, free: s.age() < mostLives*s.lifetime}, true
	default:
		return verdict{}, false
	}
}

// mostLives is how many lifetimes there are for a runner of which it is never certain that it has no job: it could be at the end
// of one that it took at the end of the first.
const mostLives = 2

// expired reports whether a runner without a job had its time.
func (s sight) expired() bool { return s.age() >= s.lifetime }

// idle reports whether it is certain that a runner that was never seen to have a job has none: within a second of taking one the
// server calls it idle.
func (s sight) idle() bool {
	return s.state == v1alpha1.StateOffline && !s.online || s.idleFor >= apart
}

// neverStarted runners will not be heard of any more.
func (s sight) neverStarted() (verdict, bool) {
	switch {
	case s.online || s.state == "":
		return verdict{}, false
	case s.credentialsLost && s.child.Phase == child.Starting:
		return verdict{reason: v1alpha1.CredentialsLost, message: "the Secret with its credential was deleted before it had started"}, true
	case s.age() < s.startup, s.now.Before(s.excused):
		return verdict{}, false
	default:
		msg := fmt.Sprintf("the server has not heard of it within startupTimeoutSeconds, %d", seconds(s.startup))
		return verdict{reason: v1alpha1.StartupTimeout, message: explain(msg, s.child.Message)}, true
	}
}

// drained runners have no job, and it is certain that they have none. One that ever had a job has it until it is gone.
func (s sight) drained() (verdict, bool) {
	switch {
	case s.active || s.state == "" || !s.drain && !s.expired():
		return verdict{}, false
	case s.drain && s.idle():
		return verdict{reason: v1alpha1.Drained, message: "its pool did not want it any more", free: true}, true
	default:
		return verdict{again: min(apart-s.idleFor, s.deadline())}, true
	}
}

// deadline is when a rule may apply that does not apply now, by time alone.
func (s sight) deadline() time.Duration {
	left := s.lifetime - s.age()
	switch {
	case s.active:
		left = s.lifetime - s.now.Sub(s.job)
	case s.expired():
		left = mostLives*s.lifetime - s.age()
	}
	if !s.online {
		left = min(left, max(s.startup-s.age(), s.excused.Sub(s.now)))
	}
	return max(left, time.Second)
}

func (s sight) age() time.Duration { return s.now.Sub(s.created) }

func seconds(d time.Duration) int { return int(d / time.Second) }

func explain(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}
