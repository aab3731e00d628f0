package pool

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
)

func TestBackoffDoublesToSixteenMinutes(t *testing.T) {
	var tally Tally
	var waits []time.Duration
	for n := range 6 {
		i := instance("acme-linux-0", ended(forgejov1.StartupTimeout, time.Duration(n)*time.Hour))
		tally = tally.count(&i, 30*time.Second)
		waits = append(waits, tally.Next.Sub(i.Status.AtProvider.CompletionTime.Time)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{60, 120, 240, 480, 960, 960}, waits); diff != "" {
		t.Errorf("-want, +got seconds:\n%s", diff)
	}
}

func TestVerdictsThatCount(t *testing.T) {
	idle := func(i *forgejov1.RunnerInstance) { i.Status.AtProvider.State = forgejov1.StateIdle }
	cases := map[string]struct {
		reason string
		of     forgejov1.RunnerReason
		edit   []func(*forgejov1.RunnerInstance)
		want   int32 // failures, after 2 before
	}{
		"RunnerConsumed":   {reason: "one that got through puts it back to zero", of: forgejov1.RunnerConsumed, want: 0},
		"StartupTimeout":   {reason: "never came up", of: forgejov1.StartupTimeout, want: 3},
		"RunnerExited":     {reason: "ended without a job", of: forgejov1.RunnerExited, want: 3},
		"RegistrationLost": {reason: "was taken off before it came up", of: forgejov1.RegistrationLost, want: 3},
		"CredentialsLost":  {reason: "could not be started", of: forgejov1.CredentialsLost, want: 3},
		"CreateFailed":     {reason: "could not be made", of: forgejov1.CreateFailed, want: 3},
		"Drained":          {reason: "was not wanted: neutral", of: forgejov1.Drained, want: 2},
		"RunnerLost":       {reason: "had a job: neutral", of: forgejov1.RunnerLost, want: 2},
		"JobTimeout":       {reason: "was wedged and never had a job", of: forgejov1.JobTimeout, want: 3},
		"JobTimeoutActive": {reason: "had a job: neutral", of: forgejov1.JobTimeout, edit: []func(*forgejov1.RunnerInstance){activeSince(0)}, want: 2},
		"JobTimeoutIdle":   {reason: "a spare that waited until its time was over: neutral", of: forgejov1.JobTimeout, edit: []func(*forgejov1.RunnerInstance){idle}, want: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := instance("acme-linux-0", append(tc.edit, ended(tc.of, 0))...)
			got := Tally{Failures: 2, Next: epoch}.count(&i, 30*time.Second)
			if diff := cmp.Diff(tc.want, got.Failures); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if (got.Failures == 0) != got.Next.IsZero() {
				t.Errorf("%s: %d failures, and the next try is at %v", tc.reason, got.Failures, got.Next)
			}
		})
	}
}

// TestATallyIsReadBack from the record that was counted last, when the provider ended before the status was written.
func TestATallyIsReadBack(t *testing.T) {
	written := Tally{Verdicts: 7, Failures: 2, Next: epoch}
	counted := instance("acme-linux-0", ended(forgejov1.RunnerExited, 0))
	last := written.count(&counted, 30*time.Second)
	counted.Annotations = map[string]string{names.AnnotationCounted: last.mark()}
	older := instance("acme-linux-1", ended(forgejov1.RunnerExited, 0), marked)
	if diff := cmp.Diff(last, tallied(written, []forgejov1.RunnerInstance{counted, older})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(last, tallied(last, []forgejov1.RunnerInstance{older})); diff != "" {
		t.Errorf("history that is gone takes nothing back: -want, +got:\n%s", diff)
	}
	if len(uncounted([]forgejov1.RunnerInstance{counted})) != 0 {
		t.Error("it is counted twice")
	}
}
