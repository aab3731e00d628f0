package pool

import (
	"fmt"
	"strings"
	"time"
	// Time zones, where the image has none.
	_ "time/tzdata"

	"github.com/robfig/cron/v3"

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

// starts are read as Kubernetes reads those of a CronJob, without its words such as @daily.
var starts = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// isOpen reports whether the window started less than its duration ago.
func isOpen(w steading.ScheduledMinimum, now time.Time) (bool, error) {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil || w.TimeZone == "Local" {
		return false, fmt.Errorf("timeZone %q is not in the IANA database", w.TimeZone)
	}
	if strings.Contains(w.Start, "=") {
		return false, fmt.Errorf("start %q has a time zone, which is for timeZone to say", w.Start)
	}
	s, err := starts.Parse(w.Start)
	if err != nil {
		return false, fmt.Errorf("start %q is not one: %w", w.Start, err)
	}
	started := s.Next(now.In(zone).Add(-time.Duration(w.DurationSeconds) * time.Second))
	return !started.IsZero() && !started.After(now), nil
}
