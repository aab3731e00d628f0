package kit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestCleanMessage(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     string
		want   string
	}{
		"UID":             {"UIDs differ with each object.", `pod "a" (0a1b2c3d-1111-2222-3333-444455556666) is forbidden`, `pod "a" (<uid>) is forbidden`},
		"ResourceVersion": {"So do resource versions.", `resourceVersion: "12345" is too old; resource version 7`, `resourceVersion: <version> is too old; resource version <version>`},
		"EphemeralPort":   {"The near end of a connection differs, the far end does not.", `read tcp 10.0.0.5:54321->203.0.113.7:6443: connection reset by peer`, `read tcp 203.0.113.7:6443: connection reset by peer`},
		"IPv6":            {"In IPv6 too.", `read tcp [::1]:54321->[::1]:6443: EOF`, `read tcp [::1]:6443: EOF`},
		"FarPort":         {"A port that was dialled stays.", `dial tcp 203.0.113.7:6443: connect: connection refused`, `dial tcp 203.0.113.7:6443: connect: connection refused`},
		"Time":            {"Times differ.", `certificate has expired: current time 2026-11-30T05:34:18Z is after 2026-11-01T00:00:00Z`, `certificate has expired: current time <time> is after <time>`},
		"GoTime":          {"As Go writes them too.", `at 2026-11-30 05:34:18.123 +0000 UTC m=+0.123 it failed`, `at <time> it failed`},
		"Duration":        {"Measured durations differ, configured ones do not.", `gave up after 1.234s (limit 30s, 12ms apart)`, `gave up after <duration> (limit 30s, <duration> apart)`},
		"Address":         {"Addresses in memory differ.", `&{0xc000123456 nil}`, `&{<address> nil}`},
		"RequestID":       {"Request ids differ.", `denied (Request ID: ab-12)`, `denied (Request ID: <id>)`},
		"Amounts":         {"Amounts are the message.", `cpu 2 is below the 4 that the runtime needs, 2 short`, `cpu 2 is below the 4 that the runtime needs, 2 short`},
		"Lines":           {"Columns of kubectl end at a line's end.", "the chart refuses its values:\npostgres:\n  - at '': missing property 'password'\n", `the chart refuses its values: postgres: - at '': missing property 'password'`},
		"Digest":          {"So are digests.", `sha256:0123456789abcdef`, `sha256:0123456789abcdef`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if have := CleanMessage(tc.in); have != tc.want {
				t.Errorf("%s: have %q", tc.reason, have)
			}
		})
	}
}

func TestCleanMessageIsBounded(t *testing.T) {
	if have := CleanMessage(strings.Repeat("ä", longest)); len(have) > longest+3 || !strings.HasSuffix(have, "ä...") {
		t.Errorf("%d bytes ending in %q", len(have), have[len(have)-6:])
	}
}

func TestCleanKeepsTheErrorsIdentity(t *testing.T) {
	conflict := kerrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", errors.New("at 0xc000123456"))
	for name, err := range map[string]error{"Changed": conflict, "Wrapped": fmt.Errorf("cannot write 0xc000123456: %w", conflict)} {
		if have := Clean(err); !kerrors.IsConflict(have) || strings.Contains(have.Error(), "0xc0") {
			t.Errorf("%s: %v", name, have)
		}
	}
	if err := fmt.Errorf("gave up: %w", context.DeadlineExceeded); Clean(err).Error() != err.Error() {
		t.Error("an error with nothing to clean was changed")
	}
	if Clean(nil) != nil {
		t.Error("nil is an error")
	}
	notOurs := &NotOursError{What: "Namespace a", Want: id, Found: &other}
	if err := fmt.Errorf("cannot go on: %w", notOurs); Clean(err).Error() != err.Error() {
		t.Error("the UID that the operator needs was taken out")
	}
}
