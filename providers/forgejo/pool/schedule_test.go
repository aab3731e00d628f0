package pool

import (
	"strings"
	"testing"
	"time"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

func TestMinimumByTheSchedule(t *testing.T) {
	at := func(text string) time.Time {
		tm, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return tm
	}
	office := steading.ScheduledMinimum{Start: "0 8 * * MON-FRI", DurationSeconds: 36000, TimeZone: "Europe/Berlin", MinRunners: 5}
	night := steading.ScheduledMinimum{Start: "30 22 * * *", DurationSeconds: 4 * 3600, TimeZone: "UTC", MinRunners: 0}
	cases := map[string]struct {
		reason  string
		windows []steading.ScheduledMinimum
		now     time.Time
		want    int
	}{
		"None":            {reason: "without a schedule it is minRunners", now: at("2026-03-02T09:00:00Z"), want: 1},
		"Before":          {reason: "a minute before the window", windows: []steading.ScheduledMinimum{office}, now: at("2026-03-02T06:59:59Z"), want: 1},
		"Starts":          {reason: "the window starts by its time zone", windows: []steading.ScheduledMinimum{office}, now: at("2026-03-02T07:00:00Z"), want: 5},
		"Last":            {reason: "its last second", windows: []steading.ScheduledMinimum{office}, now: at("2026-03-02T16:59:59Z"), want: 5},
		"Over":            {reason: "it is over", windows: []steading.ScheduledMinimum{office}, now: at("2026-03-02T17:00:00Z"), want: 1},
		"Sunday":          {reason: "not on that day", windows: []steading.ScheduledMinimum{office}, now: at("2026-03-01T09:00:00Z"), want: 1},
		"Summer":          {reason: "by the clock on the wall, summer time included", windows: []steading.ScheduledMinimum{office}, now: at("2026-07-06T06:00:00Z"), want: 5},
		"PastMidnight":    {reason: "a window that reaches into the next day", windows: []steading.ScheduledMinimum{night}, now: at("2026-03-03T02:29:00Z"), want: 0},
		"FirstOfTheList":  {reason: "of two that are open the first counts", windows: []steading.ScheduledMinimum{{Start: "* * * * *", DurationSeconds: 60, MinRunners: 9}, office}, now: at("2026-03-02T09:00:00Z"), want: 9},
		"SecondIfNotOpen": {reason: "the second if the first is not", windows: []steading.ScheduledMinimum{night, office}, now: at("2026-03-02T09:00:00Z"), want: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := minimumAt(settings(func(s *steading.RunnerPoolSpec) { s.MinRunners, s.Schedule = 1, tc.windows }), tc.now)
			if err != nil || got != tc.want {
				t.Errorf("%s: want %d, got %d, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

func TestScheduleIsRefusedByWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"0 8 * *":          "5 fields, found 4",
		"60 8 * * *":       "above maximum",
		"0 8 * * FOO":      "FOO",
		"0 8-6 * * *":      "beyond end of range",
		"*/0 * * * *":      "step",
		"0 8 0 * *":        "below minimum",
		"@daily":           "descriptors",
		"TZ=UTC 0 8 * * *": "timeZone",
	} {
		open := steading.ScheduledMinimum{Start: "* * * * *", DurationSeconds: 60}
		_, err := minimumAt(settings(func(s *steading.RunnerPoolSpec) {
			s.Schedule = []steading.ScheduledMinimum{open, {Start: text, DurationSeconds: 60}}
		}), epoch)
		if err == nil || !strings.Contains(err.Error(), "spec.schedule[1]") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, which does not say %q of the second window", text, err, want)
		}
	}
	if _, err := minimumAt(settings(func(s *steading.RunnerPoolSpec) {
		s.Schedule = []steading.ScheduledMinimum{{Start: "0 8 * * *", DurationSeconds: 60, TimeZone: "Mars/Base"}}
	}), epoch); err == nil || !strings.Contains(err.Error(), "Mars/Base") {
		t.Errorf("a time zone that is none: %v", err)
	}
}
