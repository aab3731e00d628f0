package pool

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
)

// doublings of the time until the next try: at 30 seconds between looks that is 16 minutes.
const doublings = 5

// A Tally counts the tries that failed without a job since a runner got through. Runners that were made before it was known
// that one of them fails are one try: they most likely fail for the same reason, and say nothing of what was changed since.
type Tally struct {
	// Verdicts that were counted, ever.
	Verdicts int64
	// Failures in a row.
	Failures int32
	// Raised is what Verdicts was when Failures last grew.
	Raised int64
	// Next is when runners are made again. Zero: nothing holds them back.
	Next time.Time
}

// count one more verdict.
func (t Tally) count(i *forgejov1.RunnerInstance, interval time.Duration) Tally {
	t.Verdicts++
	o := i.Status.AtProvider
	switch {
	case o.Reason == forgejov1.RunnerConsumed:
		t.Failures, t.Next = 0, time.Time{}
	case fruitless(i) && madeAt(i, t) >= t.Raised:
		t.Failures++
		t.Raised = t.Verdicts
		if o.CompletionTime != nil {
			t.Next = o.CompletionTime.Add(delay(interval, t.Failures))
		}
	}
	return t
}

// madeAt is how many verdicts the pool had counted when a runner was made. Numbers are compared and not times, since clocks
// differ. One of which it is not known counts as made just now.
func madeAt(i *forgejov1.RunnerInstance, t Tally) int64 {
	n, err := strconv.ParseInt(i.Annotations[names.AnnotationMadeAt], 10, 64)
	if err != nil {
		return t.Verdicts
	}
	return n
}

// delay after so many failures.
func delay(interval time.Duration, failures int32) time.Duration {
	return interval << min(max(0, failures), doublings)
}

// fruitless reports whether a runner failed without ever having had a job, by its own doing. One that waited for a job until
// its time was over did what it was made for.
func fruitless(i *forgejov1.RunnerInstance) bool {
	o := i.Status.AtProvider
	if o.ActiveTime != nil {
		return false
	}
	switch o.Reason {
	case forgejov1.StartupTimeout, forgejov1.RunnerExited, forgejov1.RegistrationLost, forgejov1.CredentialsLost, forgejov1.CreateFailed:
		return true
	case forgejov1.JobTimeout:
		return o.State != forgejov1.StateIdle
	default:
		return false
	}
}

// mark of a tally on the record that it counted last.
func (t Tally) mark() string {
	next := int64(0)
	if !t.Next.IsZero() {
		next = t.Next.Unix()
	}
	return fmt.Sprintf("%d %d %d %d", t.Verdicts, t.Failures, next, t.Raised)
}

// tallyOf a mark, false if it is none.
func tallyOf(mark string) (Tally, bool) {
	var (
		t    Tally
		next int64
	)
	if n, err := fmt.Sscanf(mark, "%d %d %d %d", &t.Verdicts, &t.Failures, &next, &t.Raised); err != nil || n != 4 {
		return Tally{}, false
	}
	if next != 0 {
		t.Next = time.Unix(next, 0).UTC()
	}
	return t, true
}

// counted reports whether a runner's verdict was.
func counted(i *forgejov1.RunnerInstance) bool {
	_, ok := tallyOf(i.Annotations[names.AnnotationCounted])
	return ok
}

// tallied is the tally by what is on record: the status has it, unless the provider ended between a mark and the status.
func tallied(status Tally, instances []forgejov1.RunnerInstance) Tally {
	last := status
	for n := range instances {
		if t, ok := tallyOf(instances[n].Annotations[names.AnnotationCounted]); ok && t.Verdicts > last.Verdicts {
			last = t
		}
	}
	return last
}

// uncounted are the runners whose verdict is not counted yet, in the order of their verdicts.
func uncounted(instances []forgejov1.RunnerInstance) []*forgejov1.RunnerInstance {
	var all []*forgejov1.RunnerInstance
	for n := range instances {
		if i := &instances[n]; judged(i) && !counted(i) {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b *forgejov1.RunnerInstance) int { return -later(a, b) })
	return all
}
