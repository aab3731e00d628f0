package pool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
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
		"JobGone":          {reason: "its job was cancelled: neutral", of: forgejov1.JobGone, want: 2},
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

// TestABurstDoublesOnce, however many of its runners fail, in whatever order, and whatever is forgotten meanwhile. A runner
// that was made after a failure was known doubles again.
func TestABurstDoublesOnce(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		var (
			tally    Tally
			out      []forgejov1.RunnerInstance
			spawned  = map[string]int{} // When runners were made, as number of an event.
			raised   int                // When the wait was last doubled, likewise.
			failures int32
		)
		for event := 1; event < 120; event++ {
			now := time.Duration(event) * time.Minute
			if len(out) == 0 || rnd.IntN(4) == 0 {
				for range 1 + rnd.IntN(6) {
					i := instance(fmt.Sprintf("acme-linux-%d", len(spawned)))
					i.Annotations = map[string]string{names.AnnotationMadeAt: strconv.FormatInt(tally.Verdicts, 10)}
					spawned[i.Name] = event
					out = append(out, i)
				}
				continue
			}
			n := rnd.IntN(len(out))
			i := out[n]
			out = slices.Delete(out, n, n+1)
			before := tally
			switch rnd.IntN(8) {
			case 0:
				ended(forgejov1.RunnerConsumed, now)(&i)
				failures = 0
			case 1:
				ended(forgejov1.Drained, now)(&i)
			default:
				ended(forgejov1.StartupTimeout, now)(&i)
				if spawned[i.Name] > raised {
					failures++
					raised = event
				}
			}
			tally = tally.count(&i, 30*time.Second)
			if tally.Failures != failures {
				t.Fatalf("seed %d, event %d: %d failures, want %d", seed, event, tally.Failures, failures)
			}
			if i.Status.AtProvider.Reason != forgejov1.RunnerConsumed && tally.Failures == before.Failures && !tally.Next.Equal(before.Next) {
				t.Fatalf("seed %d, event %d: the next try moves from %v to %v, and nothing was doubled", seed, event, before.Next, tally.Next)
			}
			if rnd.IntN(3) == 0 { // The provider starts anew.
				back, ok := tallyOf(tally.mark())
				if !ok {
					t.Fatalf("seed %d: the mark %q is none", seed, tally.mark())
				}
				tally = back
			}
		}
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
