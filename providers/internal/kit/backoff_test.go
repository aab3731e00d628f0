package kit

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason  string
		backoff Backoff
		after   time.Duration
		want    time.Duration
	}{
		"AtOnce":        {"The first try after deletion began is due in five minutes.", Backoff{}, 0, 5 * time.Minute},
		"InBetween":     {"A watch that wakes the controller in between moves nothing.", Backoff{}, 2 * time.Minute, 3 * time.Minute},
		"Second":        {"Then it doubles.", Backoff{}, 5 * time.Minute, 10 * time.Minute},
		"Third":         {"And again.", Backoff{}, 15 * time.Minute, 20 * time.Minute},
		"Fifth":         {"5, 10, 20, 40, 80.", Backoff{}, 75 * time.Minute, 80 * time.Minute},
		"Longest":       {"Two hours are the longest.", Backoff{}, 155 * time.Minute, 120 * time.Minute},
		"ForEver":       {"For ever, and quickly computed.", Backoff{}, 155*time.Minute + 1000000*time.Hour + time.Minute, 119 * time.Minute},
		"ClockWentBack": {"A clock that is behind waits longer.", Backoff{}, -time.Minute, 6 * time.Minute},
		"Short":         {"Both ends can be set.", Backoff{First: time.Second, Max: 3 * time.Second}, 3 * time.Second, 3 * time.Second},
		"HourOfTests":   {"A first wait above the longest is the longest.", Backoff{First: 3 * time.Hour, Max: time.Hour}, 0, time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if have := tc.backoff.Next(began, began.Add(tc.after)); have != tc.want {
				t.Errorf("%s: have %s, want %s", tc.reason, have, tc.want)
			}
		})
	}
}
