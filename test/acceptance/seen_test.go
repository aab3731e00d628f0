package acceptance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/harness"
)

// ageOf an object, at the end of a line, and what widens its column.
var ageOf = regexp.MustCompile(`(?m)[0-9]+[smhd]([0-9]+[smhd])?[ ]*$`)

// TestColumns: what kubectl get shows tells the state of a tenant and of its environments without describe.
func TestColumns(t *testing.T) {
	t.Parallel()
	playFailures(t)
	label := func(m map[string]string) map[string]string {
		if m == nil {
			m = map[string]string{}
		}
		m["example.com/shown"] = "columns"
		return m
	}
	x := suite.NewTenant(t, "table", steading.TenantSpec{})
	harness.Change(t, &suite, x, func(x *steading.Tenant) { x.Labels = label(x.Labels) })
	states := map[string]struct {
		edit  func(*steading.EnvironmentSpec)
		until func(*steading.Environment) bool
	}{
		"dev":     {func(*steading.EnvironmentSpec) {}, harness.Ready},
		"night":   {func(s *steading.EnvironmentSpec) { s.State = steading.StateStopped }, harness.Ready},
		"laptop":  {func(s *steading.EnvironmentSpec) { s.Type = steading.TypeLocalAgent }, harness.Ready},
		"refused": {func(s *steading.EnvironmentSpec) { s.Size = steading.MustResources("1", "16Gi", "2Gi") }, refused(steading.ReasonBelowFloor)},
		"crash":   {func(s *steading.EnvironmentSpec) { s.Version = versionCrash }, phase(steading.EnvironmentFailed)},
		"plan":    {func(s *steading.EnvironmentSpec) { s.State = steading.StatePlanned }, harness.Ready},
	}
	for name, s := range states {
		e := harness.Environment("table", name)
		e.Labels = label(nil)
		s.edit(&e.Spec)
		suite.Create(t, e)
		suite.WaitFor(t, e, "as it is shown", s.until)
	}
	want, err := os.ReadFile("testdata/columns.txt")
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "kubectl get shows it", func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, suite.Kubectl(), "--kubeconfig="+suite.Plane.Kubeconfig(), "get", "tenants,environments", "-A", "--selector=example.com/shown=columns")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		have := strings.TrimRight(ageOf.ReplaceAllString(string(out), "AGE"), "\n") + "\n"
		if d := cmp.Diff(string(want), have); d != "" {
			return fmt.Errorf("-want, +have:\n%s\n%s", d, have)
		}
		return nil
	})
}

// TestEventsOfALife: each transition is an event on the claim, once. No other test runs meanwhile: Crossplane writes events one
// by one, and takes minutes to catch up when many environments come and go.
func TestEventsOfALife(t *testing.T) {
	playFailures(t)
	x := suite.NewTenant(t, "life", steading.TenantSpec{})
	wantEvent(t, x, "TenantReady", "owners may apply Contexts and Environments in namespace tenant-life")
	e := harness.Environment("life", "dev")
	suite.Create(t, e)
	steps := []struct {
		edit  func(*steading.EnvironmentSpec)
		until func(*steading.Environment) bool
	}{
		{nil, harness.Ready},
		{func(s *steading.EnvironmentSpec) { s.State = steading.StateStopped }, func(e *steading.Environment) bool { return harness.Ready(e) && e.Status.Power == steading.PowerStopped }},
		{func(s *steading.EnvironmentSpec) { s.Size = steading.MustResources("17", "20Gi", "40Gi") }, refused(steading.ReasonOverEnvironmentCap)},
	}
	for _, s := range steps {
		if s.edit != nil {
			harness.Change(t, &suite, e, func(e *steading.Environment) { s.edit(&e.Spec) })
		}
		suite.WaitFor(t, e, "one step on", s.until)
	}
	crash := harness.Environment("life", "crash")
	crash.Spec.Version = versionCrash
	suite.Create(t, crash)
	suite.WaitFor(t, crash, "failed", phase(steading.EnvironmentFailed))

	wantEvents(t, e,
		"Normal PlatformFallback: placed on context platform with 8 CPU, 20Gi memory, 40Gi storage",
		"Normal Provisioning: deploying version 1.4.2",
		"Normal Running: version 1.4.2 is running in namespace life-dev",
		"Normal Stopped: scaled to zero; it still counts against the quota",
		"Warning OverEnvironmentCap: cpu 17 is over the 16 that one environment of tenant life may have, 1 too much: lower spec.size.cpu, or ask the operator to raise the Tenant's spec.quota.perEnvironment.cpu",
	)
	wantEvents(t, crash,
		"Normal PlatformFallback: placed on context platform with 8 CPU, 20Gi memory, 40Gi storage",
		"Normal Provisioning: deploying version 0.0.1-crash",
		"Warning Failed: container devops keeps crashing: exit code 3: cannot read the settings",
	)
}

// wantEvents expects these events on a claim, and of Steading's no others.
func wantEvents(t *testing.T, e *steading.Environment, want ...string) {
	t.Helper()
	slices.Sort(want)
	harness.Eventually(t, "events on "+e.Name, func(ctx context.Context) error {
		var have []string
		for _, ev := range eventsOn(ctx, t, e) {
			if ev.Reason != "BindCompositeResource" { // Crossplane's own.
				have = append(have, fmt.Sprintf("%s %s: %s", ev.Type, ev.Reason, ev.Message))
			}
		}
		slices.Sort(have)
		if d := cmp.Diff(want, slices.Compact(have)); d != "" {
			return fmt.Errorf("-want, +have:\n%s", d)
		}
		return nil
	})
}
