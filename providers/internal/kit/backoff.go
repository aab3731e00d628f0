package kit

import "time"

// A Backoff spaces out the tries of a deletion that is held up: the first after First, then twice as long each time, never
// longer than Max, for ever. It has no memory: the tries are at fixed times after the deletion began, so that neither a
// restart nor a watch that wakes the controller in between moves them.
type Backoff struct {
	// First wait. Zero: 5 minutes.
	First time.Duration
	// Max is the longest wait. Zero: 2 hours.
	Max time.Duration
}

// Next is how long after now the next try of a deletion is due that began at since.
func (b Backoff) Next(since, now time.Time) time.Duration {
	wait, longest := b.First, b.Max
	if wait <= 0 {
		wait = 5 * time.Minute
	}
	if longest <= 0 {
		longest = 2 * time.Hour
	}
	due := since.Add(min(wait, longest))
	for !due.After(now) {
		if wait >= longest {
			// From here on the steps are even.
			return longest - now.Sub(due)%longest
		}
		wait = min(2*wait, longest)
		due = due.Add(wait)
	}
	return due.Sub(now)
}
