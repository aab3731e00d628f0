package target

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestUnknownContexts: that a context is not known says nothing until all of them could be.
func TestUnknownContexts(t *testing.T) {
	for name, tc := range map[string]struct {
		started time.Duration
		want    error
	}{
		"NotStarted":  {-1, ErrNotYet},
		"JustStarted": {0, ErrNotYet},
		"LongStarted": {registering, errUnknownContext},
	} {
		t.Run(name, func(t *testing.T) {
			ts := New()
			if tc.started >= 0 {
				ts.run, ts.started = t.Context(), time.Now().Add(-tc.started)
			}
			_, err := ts.Get(context.Background(), "acme-edge")
			if !errors.Is(err, tc.want) || !errors.As(err, new(*UnreachableError)) {
				t.Errorf("have %v, want %v", err, tc.want)
			}
		})
	}
}
