package harness

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/steading-dev/steading/test/versions"
)

// Settled returns the resource versions that are read once nothing was written for a while.
func Settled(t *testing.T, quiet time.Duration, read func() map[string]string) map[string]string {
	t.Helper()
	before, since := read(), time.Now()
	Eventually(t, "everything settles", func(context.Context) error {
		time.Sleep(time.Second)
		now := read()
		if d := versions.Changes(before, now); len(d) > 0 {
			before, since = now, time.Now()
			return errors.New(strings.Join(d, "; "))
		}
		if time.Since(since) < quiet {
			return errors.New("not for long enough")
		}
		return nil
	})
	return before
}
