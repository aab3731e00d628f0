package instance

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/child"
)

func TestVerdicts(t *testing.T) {
	starting := child.State{Phase: child.Starting}
	running := child.State{Phase: child.Running}
	exited := child.State{Phase: child.Ended, ExitedZero: true, Quiet: true}
	crashed := child.State{Phase: child.Ended, Quiet: true, Message: "it ended with exit code 1"}
	cases := map[string]struct {
		reason string
		sight  sight
		want   verdict
	}{
		"Fresh": {
			reason: "a runner that starts has until startupTimeoutSeconds",
			sight:  sight{state: v1alpha1.StateOffline, child: starting},
			want:   verdict{again: 9 * time.Minute},
		},
		"Waits": {
			reason: "a spare waits for its job as long as it may live",
			sight:  sight{state: v1alpha1.StateIdle, online: true, child: running},
			want:   verdict{again: 59 * time.Minute},
		},
		"Unknown": {
			reason: "of what the server does not say nothing follows, whatever the child and the clock say",
			sight:  sight{child: crashed, drain: true, credentialsLost: true, now: start.Add(48 * time.Hour)},
			want:   verdict{again: time.Second},
		},
		"Consumed": {
			reason: "a runner that was there and is gone reported its job, though it runs on for a moment",
			sight:  sight{state: v1alpha1.StateGone, online: true, child: running},
			want:   verdict{reason: v1alpha1.RunnerConsumed, message: "it took a job and reported it"},
		},
		"ConsumedUnseen": {
			reason: "nobody saw a short job's runner online, but it ended as one does that reported",
			sight:  sight{state: v1alpha1.StateGone, child: exited},
			want:   verdict{reason: v1alpha1.RunnerConsumed, message: "it took a job and reported it"},
		},
		"ConsumedWhileDrained": {
			reason: "gone is gone: it had a job after all",
			sight:  sight{state: v1alpha1.StateGone, online: true, drain: true, child: running},
			want:   verdict{reason: v1alpha1.RunnerConsumed, message: "it took a job and reported it"},
		},
		"ConsumedAndCrashed": {
			reason: "how the process ended says nothing of the job",
			sight:  sight{state: v1alpha1.StateGone, online: true, child: crashed},
			want:   verdict{reason: v1alpha1.RunnerConsumed, message: "it took a job and reported it"},
		},
		"GoneUnseen": {
			reason: "a runner that still runs may have had a short job, and gets a moment to end",
			sight:  sight{state: v1alpha1.StateGone, child: running, goneFor: 4 * time.Second},
			want:   verdict{again: 6 * time.Second},
		},
		"GoneUnseenForLong": {
			reason: "it was deleted by somebody",
			sight:  sight{state: v1alpha1.StateGone, child: running, goneFor: 10 * time.Second},
			want:   verdict{reason: v1alpha1.RegistrationLost, message: "its registration was deleted before the server had ever heard of it"},
		},
		"GoneAndCrashed": {
			reason: "it was deleted by somebody, and the runner noticed",
			sight:  sight{state: v1alpha1.StateGone, child: crashed},
			want:   verdict{reason: v1alpha1.RegistrationLost, message: "its registration was deleted before the server had ever heard of it: it ended with exit code 1"},
		},
		"Exited": {
			reason: "it is listed still, so it reported nothing",
			sight:  sight{state: v1alpha1.StateIdle, online: true, child: exited},
			want:   verdict{reason: v1alpha1.RunnerExited, message: "it ended without having reported a job"},
		},
		"ChildDeleted": {
			reason: "an operator or a node took it (actions-runner-controller#4203)",
			sight:  sight{state: v1alpha1.StateOffline, child: child.Gone()},
			want:   verdict{reason: v1alpha1.RunnerExited, message: "it ended without having reported a job: what it ran in was deleted"},
		},
		"ExitedWhileDrained": {
			reason: "nobody wanted it: that it ended fails nothing",
			sight:  sight{state: v1alpha1.StateIdle, online: true, child: exited, drain: true},
			want:   verdict{reason: v1alpha1.Drained, message: "it ended without a job when its pool did not want it any more", free: true},
		},
		"EndedWhileActive": {
			reason: "its last report may be under way",
			sight:  sight{state: v1alpha1.StateActive, online: true, active: true, child: crashed, endedFor: time.Second},
			want:   verdict{again: 9 * time.Second},
		},
		"LostItsJob": {
			reason: "it is listed still, so the job was not reported; by now the server calls it idle",
			sight:  sight{state: v1alpha1.StateIdle, online: true, active: true, child: crashed, endedFor: 10 * time.Second},
			want:   verdict{reason: v1alpha1.RunnerLost, message: "it ended with a job in hand: it ended with exit code 1"},
		},
		"JobTooOld": {
			reason: "it is wedged, with a job",
			sight:  sight{state: v1alpha1.StateActive, online: true, active: true, job: start.Add(time.Minute), child: running, now: start.Add(61 * time.Minute)},
			want:   verdict{reason: v1alpha1.JobTimeout, message: "it had its job for longer than jobTimeoutSeconds, 3600"},
		},
		"JobTakenLate": {
			reason: "a job that was taken late has its time",
			sight:  sight{state: v1alpha1.StateActive, online: true, active: true, job: start.Add(59 * time.Minute), child: running, now: start.Add(61 * time.Minute)},
			want:   verdict{again: 58 * time.Minute},
		},
		"TooOld": {
			reason: "it may have taken a job within the last second",
			sight:  sight{state: v1alpha1.StateIdle, online: true, child: running, now: start.Add(time.Hour), idleFor: 4 * time.Second},
			want:   verdict{again: 8 * time.Second},
		},
		"TooOldStill": {
			reason: "a job would have shown by now",
			sight:  sight{state: v1alpha1.StateIdle, online: true, child: running, now: start.Add(time.Hour + apart), idleFor: apart},
			want:   verdict{reason: v1alpha1.JobTimeout, message: "it lived longer than jobTimeoutSeconds, 3600, without a job", free: true},
		},
		"TooOldAndDrained": {
			reason: "nobody wanted it: that its time was over fails nothing",
			sight:  sight{state: v1alpha1.StateIdle, online: true, child: running, now: start.Add(time.Hour + apart), idleFor: apart, drain: true},
			want:   verdict{reason: v1alpha1.Drained, message: "its pool did not want it any more", free: true},
		},
		"TooOldForAnyJob": {
			reason: "had it taken a job at the end of its time, that had its time too",
			sight:  sight{state: v1alpha1.StateIdle, online: true, child: running, now: start.Add(2 * time.Hour), idleFor: time.Second},
			want:   verdict{reason: v1alpha1.JobTimeout, message: "it lived longer than jobTimeoutSeconds, 3600, without a job"},
		},
		"NeverStarted": {
			reason: "the pod says why",
			sight:  sight{state: v1alpha1.StateOffline, child: child.State{Phase: child.Starting, Message: "no node takes its pod"}, now: start.Add(10 * time.Minute)},
			want:   verdict{reason: v1alpha1.StartupTimeout, message: "the server has not heard of it within startupTimeoutSeconds, 600: no node takes its pod"},
		},
		"OfflineLater": {
			reason: "a runner that was there has no startup to time out",
			sight:  sight{state: v1alpha1.StateOffline, online: true, child: running, now: start.Add(11 * time.Minute)},
			want:   verdict{again: 49 * time.Minute},
		},
		"CredentialsLost": {
			reason: "the pod will wait for its Secret for ever",
			sight:  sight{state: v1alpha1.StateOffline, child: starting, credentialsLost: true},
			want:   verdict{reason: v1alpha1.CredentialsLost, message: "the Secret with its credential was deleted before it had started"},
		},
		"CredentialsLostTooLate": {
			reason: "it has read them",
			sight:  sight{state: v1alpha1.StateOffline, child: running, credentialsLost: true},
			want:   verdict{again: 9 * time.Minute},
		},
		"DrainedUnseen": {
			reason: "one that nobody ever saw has no job",
			sight:  sight{state: v1alpha1.StateOffline, child: starting, drain: true},
			want:   verdict{reason: v1alpha1.Drained, message: "its pool did not want it any more", free: true},
		},
		"DrainIdle": {
			reason: "it may have taken a job within the last second",
			sight:  sight{state: v1alpha1.StateIdle, online: true, child: running, drain: true},
			want:   verdict{again: 12 * time.Second},
		},
		"DrainIdleStill": {
			reason: "a job would have shown by now",
			sight:  sight{state: v1alpha1.StateIdle, online: true, child: running, drain: true, idleFor: 12 * time.Second},
			want:   verdict{reason: v1alpha1.Drained, message: "its pool did not want it any more", free: true},
		},
		"DrainActive": {
			reason: "one with a job in hand finishes it",
			sight:  sight{state: v1alpha1.StateActive, online: true, active: true, child: running, drain: true},
			want:   verdict{again: 59 * time.Minute},
		},
		"DrainSilent": {
			reason: "it had a job and is not gone, so it has it still, though it reports nothing for now",
			sight:  sight{state: v1alpha1.StateIdle, online: true, active: true, child: running, drain: true, idleFor: time.Minute},
			want:   verdict{again: 59 * time.Minute},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.sight
			if s.job.IsZero() {
				s.job = start
			}
			s.created, s.startup, s.lifetime = start, 10*time.Minute, time.Hour
			if s.now.IsZero() {
				s.now = start.Add(time.Minute)
			}
			if diff := cmp.Diff(tc.want, s.judge(), cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
