package placement

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

func TestWhatIsHeldStays(t *testing.T) {
	held := asks("dev").holds("platform")
	cases := map[string]struct {
		reason string
		state  State
	}{
		"SameRequest":       {"Nothing is decided on again that did not change.", tenant(with(held))},
		"Stopped":           {"Stopping is never refused.", tenant(with(held.now(stopped)), closed, limit(0))},
		"ContextPinned":     {"Naming the context it is on changes nothing.", tenant(with(held.now(in("platform"))), closed)},
		"VersionLeftOut":    {"What runs goes on when its version is left out.", tenant(with(held.now(versionless)), closed)},
		"QuotaLowered":      {"A quota lowered below what is in use stops nothing.", tenant(with(held), limit(0), total("1", "1Gi", "1Gi"), perEnvironment("1", "1Gi", "1Gi"))},
		"DockerTakenBack":   {"A policy that changes stops nothing.", tenant(with(asks("dev", docker).holds("platform")))},
		"ContextGone":       {"A context that is gone moves nothing.", tenant(with(asks("dev").holds("edge")))},
		"DefaultCapChanged": {"A default size stays as it was granted.", tenant(with(asks("dev", noSize).holds("platform")), perEnvironment("8", "20Gi", "20Gi"))},
		"BeingDeleted":      {"What is being deleted keeps what it holds until it is gone.", tenant(with(held.now(version("2")).leaving()))},
		"ChartUnknown":      {"A registry that is down stops nothing.", tenant(with(held), noChart)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := Decision{UID: "dev", Held: tc.state.Applicants[0].Held}
			if diff := cmp.Diff(want, Decide(tc.state)[0]); diff != "" {
				t.Errorf("%s: -want, +have:\n%s", tc.reason, diff)
			}
		})
	}
}

func closed(s *State)  { s.Closed = "closed" }
func noChart(s *State) { s.Chart, s.ChartProblem = nil, "401 Unauthorized" }
func asking(s *State)  { s.Chart = nil }

func total(cpu, memory, storage string) func(*State) {
	return func(s *State) { s.Quota.Total = sizeOf(cpu, memory, storage) }
}

func perEnvironment(cpu, memory, storage string) func(*State) {
	return func(s *State) { s.Quota.PerEnvironment = sizeOf(cpu, memory, storage) }
}

func TestAChangeIsAdmittedAgain(t *testing.T) {
	type want struct {
		refusal string
		context string
		version string
		cpu     string
		docker  bool
	}
	kept := want{context: "edge", version: "1.4.2", cpu: "4"}
	refused := func(reason string) want { w := kept; w.refusal = reason; return w }
	dev := asks("dev").holds("edge")

	cases := map[string]struct {
		reason string
		state  State
		want   want
	}{
		"Version": {
			"A new version is granted where the old one is, whatever became of the context and the limit.",
			tenant(with(dev.now(version("2"))), limit(0)),
			want{context: "edge", version: "2", cpu: "4"},
		},
		"VersionOverLoweredTotal": {
			"A budget that was lowered does not keep what stands from a new version of the same size.",
			tenant(with(dev.now(version("2"))), total("3", "16Gi", "2Gi")),
			want{context: "edge", version: "2", cpu: "4"},
		},
		"VersionInFullTotal": {
			"An environment that fills the budget may still be upgraded.",
			tenant(with(dev.now(version("2"))), total("4", "16Gi", "2Gi")),
			want{context: "edge", version: "2", cpu: "4"},
		},
		"VersionOverLoweredCap": {
			"Neither does a cap.",
			tenant(with(dev.now(version("2"))), perEnvironment("3", "16Gi", "2Gi")),
			want{context: "edge", version: "2", cpu: "4"},
		},
		"VersionWhileChartIsUnknown": {
			"A new version needs a chart.",
			tenant(with(dev.now(version("2"))), noChart),
			refused("ChartNotResolved"),
		},
		"VersionWhileTenantGoes": {
			"A tenant that is being deleted upgrades nothing.",
			tenant(with(dev.now(version("2"))), closed),
			refused("TenantNotReady"),
		},
		"Grow": {
			"A larger size is granted within the cap and the total.",
			tenant(with(dev.now(sized(sizeOf("8", "16Gi", "2Gi")))), total("8", "16Gi", "2Gi")),
			want{context: "edge", version: "1.4.2", cpu: "8"},
		},
		"GrowOverLoweredCap": {
			"What it holds above the cap is no leave to take more.",
			tenant(with(dev.now(sized(sizeOf("5", "16Gi", "2Gi")))), perEnvironment("3", "16Gi", "2Gi")),
			refused("OverEnvironmentCap"),
		},
		"GrowTooMuch": {
			"A refused size keeps the old one.",
			tenant(with(dev.now(sized(sizeOf("8", "16Gi", "2Gi")))), total("7", "16Gi", "2Gi")),
			refused("OverTenantTotal"),
		},
		"ShrinkWhileOverTotal": {
			"A tenant over a lowered budget may come back under it step by step.",
			tenant(with(asks("dev", sized(sizeOf("8", "32Gi", "4Gi"))).holds("edge").now(sized(sizeOf("6", "20Gi", "3Gi")))), total("4", "16Gi", "2Gi")),
			want{context: "edge", version: "1.4.2", cpu: "6"},
		},
		"ShrinkOneGrowAnother": {
			"But not by taking more of something else.",
			tenant(with(asks("dev", sized(sizeOf("8", "16Gi", "2Gi"))).holds("edge").now(sized(sizeOf("6", "16Gi", "3Gi")))), total("4", "16Gi", "2Gi")),
			want{refusal: "OverTenantTotal", context: "edge", version: "1.4.2", cpu: "8"},
		},
		"SizeLeftOut": {
			"A size that is left out becomes the tenant's cap.",
			tenant(with(dev.now(noSize))),
			want{context: "edge", version: "1.4.2", cpu: "16"},
		},
		"Docker": {
			"The sidecar is asked for later on.",
			tenant(with(asks("dev", sized(sizeOf("12", "32Gi", "52Gi"))).holds("edge").now(docker)), func(s *State) { s.Docker = steading.DockerAllowed }),
			want{context: "edge", version: "1.4.2", cpu: "12", docker: true},
		},
		"DockerDenied": {
			"A refused sidecar keeps what runs.",
			tenant(with(dev.now(docker))),
			refused("DockerDenied"),
		},
		"OtherContext": {
			"An environment does not move.",
			tenant(on(Context{Name: "spare"}), with(dev.now(in("spare")))),
			refused("ContextImmutable"),
		},
		"RecordGetsAVersion": {
			"A record that gets a version is placed, and counted against the limit already.",
			tenant(on(Context{Name: "edge"}), limit(1), with(asks("dev", versionless).holds("").now(version("1.4.2")))),
			want{context: "edge", version: "1.4.2", cpu: "4"},
		},
		"RecordGetsAVersionThatDoesNotFit": {
			"Where it cannot be placed it stays a record.",
			tenant(on(Context{Name: "edge", Problem: "Pending"}), with(asks("dev", versionless).holds("").now(version("1.4.2")))),
			want{refusal: "NoContextRunning"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.state)[0]
			have := want{context: d.Held.Grant.Context, version: d.Held.Grant.Version, docker: d.Held.Grant.Docker}
			if c := d.Held.Grant.Caps; c != nil {
				have.cpu = c.CPU.String()
			}
			if d.Refusal != nil {
				have.refusal = d.Refusal.Reason
			}
			if diff := cmp.Diff(tc.want, have, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: -want, +have:\n%s", tc.reason, diff)
			}
			if (d.Refusal == nil) != cmp.Equal(d.Held.Request, tc.state.Applicants[0].Request) {
				t.Errorf("%s: the holding answers %+v", tc.reason, d.Held.Request)
			}
		})
	}
}

func TestTheOldestClaimComesFirst(t *testing.T) {
	cases := map[string]struct {
		reason     string
		applicants []Applicant
		want       string
	}{
		"ByAge":          {"The older claim wins, however the placements are listed.", []Applicant{asks("a").at(2 * time.Second), asks("b").at(time.Second)}, "b"},
		"ByName":         {"Claims of the same second go by name.", []Applicant{asks("b"), asks("a")}, "a"},
		"PlansGoLast":    {"What is only planned takes no place.", []Applicant{asks("b"), asks("a", dryRun).at(-time.Hour)}, "b"},
		"SmallerOneFits": {"One that does not fit holds nobody else up.", []Applicant{asks("a", sized(sizeOf("17", "16Gi", "2Gi"))), asks("b")}, "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var granted []string
			for _, d := range Decide(tenant(limit(1), with(tc.applicants...))) {
				if d.Held != nil {
					granted = append(granted, string(d.UID))
				}
			}
			if !slices.Equal(granted, []string{tc.want}) {
				t.Errorf("%s: want %s alone, have %v", tc.reason, tc.want, granted)
			}
		})
	}
}

func TestAPlanIsWhatWouldBeDone(t *testing.T) {
	cases := map[string]struct {
		reason string
		state  State
		want   []string
	}{
		"Granted": {
			"All steps, with the numbers as they would be.",
			tenant(on(Context{Name: "edge", Max: full(20)}), with(asks("a").holds("edge"), asks("dev", dryRun))),
			[]string{
				`place on context "edge" (FirstWithRoom), environment 2 of 20 there`,
				"admit as environment 2 of 10 of tenant acme",
				"cap namespace acme-dev at 4 CPU, 16Gi memory, 2Gi storage",
				"use 8 CPU, 32Gi memory, 4Gi storage of the tenant's 160 CPU, 360Gi memory, 720Gi storage",
				"deploy acme-devops at version 1.4.2 from chart registry.example/charts/runtime 1.0.0",
			},
		},
		"Refused": {
			"The steps up to the refusal, and the refusal.",
			tenant(limit(0), with(asks("dev", dryRun))),
			[]string{
				`place on context "platform" (PlatformFallback), environment 1 there`,
				"refuse (EnvironmentLimitReached): tenant acme has 0 of at most 0 environments: delete one, or ask the operator to raise the Tenant's spec.quota.maxEnvironments",
			},
		},
		"Record": {
			"A record is registered.",
			tenant(with(asks("dev", agent, dryRun))),
			[]string{"admit as environment 1 of 10 of tenant acme", "register acme-dev; nothing is deployed"},
		},
		"AfterThoseThatArePending": {
			"Numbers are those after all that is pending.",
			tenant(with(asks("dev", agent, dryRun).at(-time.Hour), asks("a", agent))),
			[]string{"admit as environment 2 of 10 of tenant acme", "register acme-dev; nothing is deployed"},
		},
		"Upgrade": {
			"What runs stays where it is, and is not counted twice.",
			tenant(with(asks("dev").holds("edge").now(version("2"), dryRun))),
			[]string{
				`stay on context "edge" (Requested)`,
				"cap namespace acme-dev at 4 CPU, 16Gi memory, 2Gi storage",
				"use 4 CPU, 16Gi memory, 2Gi storage of the tenant's 160 CPU, 360Gi memory, 720Gi storage",
				"deploy acme-devops at version 2 from chart registry.example/charts/runtime 1.0.0",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(tc.state.Applicants, func(a Applicant) bool { return a.Request.DryRun })
			d := Decide(tc.state)[i]
			if diff := cmp.Diff(tc.want, d.Plan); diff != "" {
				t.Errorf("%s: -want, +have:\n%s", tc.reason, diff)
			}
			if d.Refusal != nil || !cmp.Equal(d.Held, tc.state.Applicants[i].Held) {
				t.Errorf("%s: a plan changes nothing: %+v", tc.reason, d)
			}

			// The same code decides: what was planned is what is done.
			tc.state.Applicants[i].Request.DryRun = false
			done := Decide(tc.state)[i]
			refused := len(tc.want) > 0 && len(tc.want[len(tc.want)-1]) > 6 && tc.want[len(tc.want)-1][:6] == "refuse"
			if name != "AfterThoseThatArePending" && (done.Refusal != nil) != refused {
				t.Errorf("%s: planned %v, done %+v", tc.reason, tc.want, done)
			}
		})
	}
}

func TestWhoNeedsAChartThatIsAskedForIsUndecided(t *testing.T) {
	s := tenant(asking, limit(4), with(
		asks("new"), asks("plan").holds("platform").now(version("2"), dryRun), asks("held").holds("platform"), asks("upgrade").holds("platform").now(version("2")),
		asks("late", agent).at(time.Second), asks("wrong", in("nowhere"))))
	have := map[string]string{}
	for i, d := range Decide(s) {
		switch {
		case d.Undecided && d.Refusal == nil && len(d.Plan) == 0 && cmp.Equal(d.Held, s.Applicants[i].Held):
			have[string(d.UID)] = "undecided"
		case d.Refusal != nil:
			have[string(d.UID)] = d.Refusal.Reason
		default:
			have[string(d.UID)] = "decided"
		}
	}
	want := map[string]string{
		"new": "undecided", "plan": "undecided", "held": "decided", "upgrade": "undecided",
		"late":  "EnvironmentLimitReached", // The place is kept for the older claim.
		"wrong": "UnknownContext",
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
}

func TestDecidingTwiceChangesNothing(t *testing.T) {
	s := tenant(limit(2), on(Context{Name: "edge", Max: full(1)}), with(
		asks("a"), asks("b"), asks("c", agent), asks("d", dryRun), asks("e").holds("edge").leaving()))
	first := Decide(s)
	for i, d := range first {
		s.Applicants[i].Held = d.Held
	}
	if diff := cmp.Diff(first, Decide(s)); diff != "" {
		t.Errorf("-first, +second:\n%s", diff)
	}
}
