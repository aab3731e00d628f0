package pool

import (
	"fmt"
	"time"
	// Time zones, where the image has none.
	_ "time/tzdata"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// minimumAt is the minRunners that counts at a time: that of the first window that is open, or else the pool's.
func minimumAt(s steading.RunnerPoolSpec, now time.Time) (int, error) {
	minimum, found := int(s.MinRunners), false
	for n, w := range s.Schedule {
		// All are read, so that a wrong one is told of before it is needed.
		open, err := isOpen(w, now)
		if err != nil {
			return int(s.MinRunners), fmt.Errorf("cannot use spec.schedule[%d]: %w", n, err)
		}
		if open && !found {
			minimum, found = int(w.MinRunners), true
		}
	}
	return minimum, nil
}

func isOpen(w steading.ScheduledMinimum, now time.Time) (bool, error) {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil || w.TimeZone == "Local" {
		return false, fmt.Errorf("timeZone %q is not in the IANA database", w.TimeZone)
	}
	c, err := parseCron(w.Start)
	if err != nil {
		return false, err
	}
	return c.startedWithin(time.Duration(w.DurationSeconds)*time.Second, now.In(zone)), nil
}
