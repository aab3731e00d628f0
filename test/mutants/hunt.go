package mutants

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Verdict on a mutant.
type Verdict string

// Verdicts.
const (
	// Killed: its test failed.
	Killed Verdict = "killed"
	// Alive: its test passed all the same.
	Alive Verdict = "ALIVE"
	// Stillborn: it could not be tried, for Result.Why.
	Stillborn Verdict = "STILLBORN"
)

// A Result is what became of a mutant.
type Result struct {
	Mutant
	Verdict Verdict
	// Why it is not killed: the end of the test's output, or why it could not be tried.
	Why string
	// Took is how long its test ran.
	Took time.Duration
}

// tests that may take longer than this hang.
const testTimeout = 5 * time.Minute

// Sound reports the tests of the mutants that fail in the tree as it is: those can kill nothing.
func (t Tree) Sound(ctx context.Context, mutants []Mutant) error {
	byPackage := map[string][]string{}
	var packages []string
	for _, m := range mutants {
		if !slices.Contains(packages, m.Package) {
			packages = append(packages, m.Package)
		}
		if !slices.Contains(byPackage[m.Package], m.Test) {
			byPackage[m.Package] = append(byPackage[m.Package], m.Test)
		}
	}
	for _, p := range packages {
		out, err := t.test(ctx, p, byPackage[p]...)
		if err != nil {
			return fmt.Errorf("cannot hunt mutants: tests of %s fail without any: %s", p, tail(out))
		}
		for _, name := range byPackage[p] {
			if !strings.Contains(out, "--- PASS: "+name+" ") {
				return fmt.Errorf("cannot hunt mutants: there is no test %s in %s, or it is skipped", name, p)
			}
		}
	}
	return nil
}

// Hunt a mutant: break the tree, run its test, mend the tree.
func (t Tree) Hunt(ctx context.Context, m Mutant) Result {
	if err := t.Apply(ctx, m); err != nil {
		return Result{Mutant: m, Verdict: Stillborn, Why: err.Error()}
	}
	started := time.Now()
	out, err := t.test(ctx, m.Package, m.Test)
	r := Result{Mutant: m, Verdict: Alive, Took: time.Since(started)}
	switch {
	case err == nil:
		r.Why = tail(out)
	case strings.Contains(out, "--- FAIL: "+m.Test+" "), strings.Contains(out, "panic: test timed out"):
		r.Verdict = Killed
	default:
		r.Verdict, r.Why = Stillborn, "its test did not run: "+tail(out)
	}
	if err := t.Revert(ctx, m); err != nil {
		r.Verdict, r.Why = Stillborn, err.Error()
	}
	return r
}

func (t Tree) test(ctx context.Context, pkg string, names ...string) (string, error) {
	quoted := make([]string, 0, len(names))
	for _, n := range names {
		quoted = append(quoted, regexp.QuoteMeta(n))
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-vet=off", "-v", "-timeout="+testTimeout.String(), //nolint:gosec // Our own tests.
		"-run=^("+strings.Join(quoted, "|")+")$", pkg)
	cmd.Dir = t.Dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// tail is the end of an output.
func tail(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
