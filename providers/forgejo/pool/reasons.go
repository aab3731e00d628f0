package pool

import (
	"fmt"
	"slices"
	"time"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// mostReasons are told.
const mostReasons = 10

// reasons why waiting jobs have no runner, sorted. Unserved are the labels that no pool serves, with the number of jobs.
func reasons(s State, d Decision, unserved map[string]int) []string {
	var all []string
	switch {
	case d.Unserved == 0:
	case s.Gate != nil:
		all = append(all, fmt.Sprintf("%s: %s", s.Gate.Message, jobsWait(d.Unserved)))
	default:
		all = append(all, fmt.Sprintf("at maxRunners %d: %s", s.Settings.MaxRunners, jobsWait(d.Unserved)))
	}
	for labels, n := range unserved {
		all = append(all, fmt.Sprintf("no pool serves label %s: %s", labels, jobsWait(n)))
	}
	slices.Sort(all)
	return all[:min(len(all), mostReasons)]
}

func jobsWait(n int) string {
	if n == 1 {
		return "1 job waits"
	}
	return fmt.Sprintf("%d jobs wait", n)
}

// gateOf a pool by what is the same for all of its jobs.
func gateOf(settings steading.RunnerPoolSpec, t Tally, now time.Time) *Gate {
	switch {
	case settings.Suspend:
		return &Gate{Reason: steading.ReasonSuspended, Message: "spec.suspend is true"}
	case t.Next.After(now):
		return &Gate{Reason: steading.ReasonBackingOff, Message: fmt.Sprintf("backing off until %s, since %s failed without a job",
			t.Next.UTC().Format("15:04:05Z"), tries(t.Failures))}
	default:
		return nil
	}
}

func tries(n int32) string {
	if n == 1 {
		return "the last try"
	}
	return fmt.Sprintf("the last %d tries", n)
}
