package placement

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pin   = &v1alpha1.Chart{Repository: "registry.example/charts/runtime", Version: "1.0.0", Digest: "sha256:aa"}
)

func sizeOf(cpu, memory, storage string) *steading.Resources {
	return steading.MustResources(cpu, memory, storage)
}

// small fits the floor of the tests, which is 4 CPU, 16Gi, 2Gi, and 12 CPU, 32Gi, 52Gi with docker.
func small() *steading.Resources { return sizeOf("4", "16Gi", "2Gi") }

func testFloor(docker bool) steading.Resources {
	if docker {
		return *sizeOf("12", "32Gi", "52Gi")
	}
	return *sizeOf("4", "16Gi", "2Gi")
}

// tenant acme: the default quota, no contexts but the platform's own cluster, the chart known.
func tenant(edit ...func(*State)) State {
	s := State{
		Tenant: "acme", Quota: steading.Quota{}.WithDefaults(), Docker: steading.DockerDenied, Platform: steading.PlatformClusterFallback,
		Contexts: []Context{{Name: steading.PlatformContext}}, Chart: pin, Floor: testFloor,
	}
	for _, e := range edit {
		e(&s)
	}
	return s
}

func with(as ...Applicant) func(*State) {
	return func(s *State) { s.Applicants = append(s.Applicants, as...) }
}

func on(cs ...Context) func(*State) {
	return func(s *State) { s.Contexts = append(s.Contexts, cs...) }
}

func limit(n int32) func(*State) { return func(s *State) { s.Quota.MaxEnvironments = &n } }

func asks(env string, edit ...func(*v1alpha1.Request)) Applicant {
	r := v1alpha1.Request{Type: steading.TypeRuntime, Version: "1.4.2", Size: small()}
	for _, e := range edit {
		e(&r)
	}
	return Applicant{UID: types.UID(env), Environment: env, Claimed: epoch, Request: r}
}

func in(context string) func(*v1alpha1.Request) {
	return func(r *v1alpha1.Request) { r.Context = context }
}

func sized(r *steading.Resources) func(*v1alpha1.Request) {
	return func(req *v1alpha1.Request) { req.Size = r }
}

func docker(r *v1alpha1.Request)      { r.Docker = true }
func dryRun(r *v1alpha1.Request)      { r.DryRun = true }
func stopped(r *v1alpha1.Request)     { r.Stopped = true }
func noSize(r *v1alpha1.Request)      { r.Size = nil }
func versionless(r *v1alpha1.Request) { r.Version = "" }
func agent(r *v1alpha1.Request)       { r.Type = steading.TypeLocalAgent; r.Version = ""; r.Size = nil }
func version(v string) func(*v1alpha1.Request) {
	return func(r *v1alpha1.Request) { r.Version = v }
}

// holds what it asks for, on a context.
func (a Applicant) holds(context string) Applicant {
	g := v1alpha1.Grant{Context: context, Reason: steading.PlacementRequested, Version: a.Request.Version, Docker: a.Request.Docker, Caps: a.Request.Size, Chart: pin}
	if g.Caps == nil {
		g.Caps = steading.Quota{}.WithDefaults().PerEnvironment
	}
	if record(a.Request) {
		g = v1alpha1.Grant{}
	}
	a.Held = &Holding{Grant: g, Request: a.Request}
	return a
}

// now asks for something else than it holds.
func (a Applicant) now(edit ...func(*v1alpha1.Request)) Applicant {
	for _, e := range edit {
		e(&a.Request)
	}
	return a
}

func (a Applicant) leaving() Applicant { a.Leaving = true; return a }

func (a Applicant) at(d time.Duration) Applicant { a.Claimed = epoch.Add(d); return a }

func full(n int32) *int32 { return &n }

func TestDecideOnOne(t *testing.T) {
	type want struct {
		context string
		why     steading.PlacementReason
		reason  string // of the refusal
		message string
		placing bool
	}
	const dev = "dev"
	onPlatform := want{context: "platform", why: steading.PlacementPlatformFallback}

	cases := map[string]struct {
		reason string
		state  State
		want   want
	}{
		// Table 3.3 of the source, row by row.
		"RecordIsNotPlaced": {
			reason: "An agent's environment is recorded whatever context it names.",
			state:  tenant(with(asks(dev, agent, in("nowhere")))),
			want:   want{},
		},
		"UnknownContext": {
			reason: "A named context has to be the tenant's.",
			state:  tenant(on(Context{Name: "b"}, Context{Name: "a"}), with(asks(dev, in("edge")))),
			want: want{reason: "UnknownContext", placing: true,
				message: `context "edge" not found: tenant acme has a, b; name one of them in spec.contextRef.name, or apply a Context of that name`},
		},
		"UnknownContextWithoutContexts": {
			reason: "Without contexts there is nothing to name instead.",
			state:  tenant(with(asks(dev, in("edge")))),
			want: want{reason: "UnknownContext", placing: true,
				message: `context "edge" not found: tenant acme has no contexts; apply a Context of that name, or leave out spec.contextRef`},
		},
		"NamedContext": {
			reason: "A named context with room is taken, even if another comes first.",
			state:  tenant(on(Context{Name: "a"}, Context{Name: "edge", Max: full(1)}), with(asks(dev, in("edge")))),
			want:   want{context: "edge", why: steading.PlacementRequested},
		},
		"NamedContextNotRunning": {
			reason: "A named context that does not run is refused, which the source did not (W17).",
			state:  tenant(on(Context{Name: "edge", Problem: "Unreachable"}), with(asks(dev, in("edge")))),
			want: want{reason: "ContextNotRunning", placing: true,
				message: `context "edge" is not running (Unreachable): see its conditions, or name another in spec.contextRef.name`},
		},
		"NamedContextDraining": {
			reason: "A context that drains takes no more.",
			state:  tenant(on(Context{Name: "edge", Drain: true}), with(asks(dev, in("edge")))),
			want: want{reason: "ContextNotRunning", placing: true,
				message: `context "edge" is draining and takes no more environments: set its spec.drain to false, or name another in spec.contextRef.name`},
		},
		"NamedContextFull": {
			reason: "A full context is refused with its name, count and ceiling; what is being deleted takes a place.",
			state: tenant(on(Context{Name: "edge", Max: full(2)}),
				with(asks("a").holds("edge"), asks("b").holds("edge").leaving(), asks(dev, in("edge")))),
			want: want{reason: "ContextFull", placing: true,
				message: `context "edge" is full: it holds 2 of at most 2 environments; delete one of them, raise its spec.maxEnvironments, or name another in spec.contextRef.name`},
		},
		"NoContexts": {
			reason: "A tenant without contexts runs on the platform's own cluster.",
			state:  tenant(with(asks(dev))),
			want:   onPlatform,
		},
		"NoContextsAndPlatformDenied": {
			reason: "Unless it may not.",
			state:  tenant(with(asks(dev)), func(s *State) { s.Platform = steading.PlatformClusterDenied }),
			want: want{reason: "PlatformClusterDenied", placing: true,
				message: "tenant acme has no context and may not use the platform's own cluster: apply a Context, or ask the operator to set the Tenant's spec.platformCluster to Allowed"},
		},
		"PlatformNamedWithoutContexts": {
			reason: "With Fallback the platform may be named while there is no context.",
			state:  tenant(with(asks(dev, in("platform")))),
			want:   want{context: "platform", why: steading.PlacementRequested},
		},
		"PlatformNamedWithContexts": {
			reason: "With Fallback the platform may not be named once there is a context.",
			state:  tenant(on(Context{Name: "edge"}), with(asks(dev, in("platform")))),
			want: want{reason: "PlatformClusterDenied", placing: true,
				message: "tenant acme may use the platform's own cluster only while it has no context, and it has 1: leave out spec.contextRef, or ask the operator to set the Tenant's spec.platformCluster to Allowed"},
		},
		"PlatformNamedAndAllowed": {
			reason: "With Allowed it may.",
			state:  tenant(on(Context{Name: "edge"}), with(asks(dev, in("platform"))), func(s *State) { s.Platform = steading.PlatformClusterAllowed }),
			want:   want{context: "platform", why: steading.PlacementRequested},
		},
		"PlatformNamedAndDenied": {
			reason: "With Denied it may not.",
			state:  tenant(on(Context{Name: "edge"}), with(asks(dev, in("platform"))), func(s *State) { s.Platform = steading.PlatformClusterDenied }),
			want: want{reason: "PlatformClusterDenied", placing: true,
				message: "tenant acme may not use the platform's own cluster: name another context in spec.contextRef.name, or ask the operator to set the Tenant's spec.platformCluster to Allowed"},
		},
		"PlatformFull": {
			reason: "The operator may bound a tenant's places on the platform's own cluster.",
			state: tenant(with(asks("a").holds("platform"), asks(dev)), func(s *State) {
				s.Contexts = []Context{{Name: steading.PlatformContext, Max: full(1)}}
			}),
			want: want{reason: "ContextFull", placing: true,
				message: "the platform's own cluster is full for tenant acme: it holds 1 of at most 1 environments; delete one of them, apply a Context, or ask the operator to raise platformCluster.maxEnvironments"},
		},
		"FirstWithRoom": {
			reason: "The first running context with room, by name.",
			state: tenant(on(Context{Name: "d"}, Context{Name: "c"}, Context{Name: "b", Max: full(1)}, Context{Name: "a", Problem: "Pending"}),
				with(asks("x").holds("b"), asks(dev))),
			want: want{context: "c", why: steading.PlacementFirstWithRoom},
		},
		"NoneRunning": {
			reason: "Contexts that do not run never fall back to the platform's own cluster.",
			state: tenant(on(Context{Name: "b", Drain: true}, Context{Name: "a", Problem: "Pending"}), with(asks(dev)),
				func(s *State) { s.Platform = steading.PlatformClusterAllowed }),
			want: want{reason: "NoContextRunning", placing: true,
				message: "none of the tenant's 2 contexts takes environments: a is not running (Pending), b is draining; see their conditions, or apply another Context"},
		},
		"AllFull": {
			reason: "Nor do full ones.",
			state: tenant(on(Context{Name: "b", Max: full(0)}, Context{Name: "a", Max: full(1)}, Context{Name: "c", Problem: "Pending"}),
				with(asks("x").holds("a"), asks(dev)), func(s *State) { s.Platform = steading.PlatformClusterAllowed }),
			want: want{reason: "AllContextsFull", placing: true,
				message: "all 2 running contexts of the tenant are full: a holds 1 of 1, b holds 0 of 0; delete an environment, raise a context's spec.maxEnvironments, or apply another Context"},
		},

		// Quota.
		"LimitReached": {
			reason: "The limit counts every type, and names count and cap.",
			state:  tenant(limit(2), with(asks("a").holds("platform"), asks("b", agent).holds(""), asks(dev))),
			want: want{reason: "EnvironmentLimitReached",
				message: "tenant acme has 2 of at most 2 environments: delete one, or ask the operator to raise the Tenant's spec.quota.maxEnvironments"},
		},
		"LimitReachedByRecord": {
			reason: "A record needs a place under the limit too.",
			state:  tenant(limit(0), with(asks(dev, agent))),
			want: want{reason: "EnvironmentLimitReached",
				message: "tenant acme has 0 of at most 0 environments: delete one, or ask the operator to raise the Tenant's spec.quota.maxEnvironments"},
		},
		"LimitLeavesOutWhatIsBeingDeleted": {
			reason: "A teardown that is stuck does not take a tenant's allowance away.",
			state:  tenant(limit(1), with(asks("a").holds("platform").leaving(), asks(dev))),
			want:   onPlatform,
		},
		"LimitLeavesOutWhatWasRefused": {
			reason: "What was refused holds nothing.",
			state:  tenant(limit(1), with(asks("a", sized(sizeOf("1", "16Gi", "2Gi"))), asks(dev).at(time.Second))),
			want:   onPlatform,
		},
		"DockerDenied": {
			reason: "The privileged sidecar needs the operator's leave.",
			state:  tenant(with(asks(dev, docker))),
			want: want{reason: "DockerDenied",
				message: "tenant acme may not run the privileged docker sidecar: set spec.docker.enabled to false, or ask the operator to set the Tenant's spec.docker to Allowed"},
		},
		"FloorExactly": {
			reason: "A size at the floor passes.",
			state:  tenant(with(asks(dev, sized(sizeOf("4", "16Gi", "2Gi"))))),
			want:   onPlatform,
		},
		"BelowFloorInCPU": {
			reason: "The first resource that falls short is named, with the shortfall and the field.",
			state:  tenant(with(asks(dev, sized(sizeOf("3999m", "1Gi", "1Gi"))))),
			want:   want{reason: "BelowFloor", message: "cpu 3999m is below the 4 that the runtime needs, 1m short: raise spec.size.cpu"},
		},
		"BelowFloorInMemory": {
			reason: "Memory is next.",
			state:  tenant(with(asks(dev, sized(sizeOf("4", "16383Mi", "1Gi"))))),
			want:   want{reason: "BelowFloor", message: "memory 16383Mi is below the 16Gi that the runtime needs, 1Mi short: raise spec.size.memory"},
		},
		"BelowFloorInStorage": {
			reason: "Storage is last.",
			state:  tenant(with(asks(dev, sized(sizeOf("4", "16Gi", "1Gi"))))),
			want:   want{reason: "BelowFloor", message: "storage 1Gi is below the 2Gi that the runtime needs, 1Gi short: raise spec.size.storage"},
		},
		"BelowFloorWithDocker": {
			reason: "The sidecar raises the floor.",
			state:  tenant(with(asks(dev, docker, sized(sizeOf("11", "32Gi", "52Gi")))), func(s *State) { s.Docker = steading.DockerAllowed }),
			want:   want{reason: "BelowFloor", message: "cpu 11 is below the 12 that the runtime with its docker sidecar needs, 1 short: raise spec.size.cpu"},
		},
		"DefaultBelowFloor": {
			reason: "A tenant's cap below the floor is the operator's to raise.",
			state:  tenant(with(asks(dev, noSize)), func(s *State) { s.Quota.PerEnvironment = sizeOf("2", "16Gi", "2Gi") }),
			want: want{reason: "BelowFloor",
				message: "cpu 2 is below the 4 that the runtime needs, 2 short: ask the operator to raise the Tenant's spec.quota.perEnvironment.cpu"},
		},
		"OverCap": {
			reason: "No environment is larger than the tenant's cap.",
			state:  tenant(with(asks(dev, sized(sizeOf("16", "40Gi", "72Gi"))))),
			want: want{reason: "OverEnvironmentCap",
				message: "memory 40Gi is over the 36Gi that one environment of tenant acme may have, 4Gi too much: lower spec.size.memory, or ask the operator to raise the Tenant's spec.quota.perEnvironment.memory"},
		},
		"TotalExactly": {
			reason: "The last of the budget may be used.",
			state:  tenant(with(asks("a", noSize).holds("platform"), asks(dev, noSize)), func(s *State) { s.Quota.Total = sizeOf("32", "72Gi", "144Gi") }),
			want:   onPlatform,
		},
		"OverTotal": {
			reason: "The projection names resource, sum, budget, excess, and every lever.",
			state:  tenant(with(asks("a", noSize).holds("platform"), asks(dev, noSize)), func(s *State) { s.Quota.Total = sizeOf("32", "72Gi", "140Gi") }),
			want: want{reason: "OverTenantTotal",
				message: "storage of tenant acme would be 144Gi (72Gi for this environment and 72Gi for 1 other), the budget is 140Gi, 4Gi too much: " +
					"set spec.size.storage below the default of 72Gi, delete an environment, or ask the operator to raise the Tenant's spec.quota.total.storage"},
		},
		"TotalCountsWhatIsBeingDeleted": {
			reason: "What is being deleted uses its resources until it is gone.",
			state: tenant(with(asks("a").holds("platform").leaving(), asks(dev)), func(s *State) {
				s.Quota.Total = sizeOf("7", "72Gi", "144Gi")
			}),
			want: want{reason: "OverTenantTotal",
				message: "cpu of tenant acme would be 8 (4 for this environment and 4 for 1 other, counting 1 being deleted), the budget is 7, 1 too much: " +
					"lower spec.size.cpu, delete an environment, or ask the operator to raise the Tenant's spec.quota.total.cpu"},
		},
		"RecordsHaveNoSize": {
			reason: "Records use nothing of the totals.",
			state:  tenant(with(asks("a", versionless).holds(""), asks(dev, agent)), func(s *State) { s.Quota.Total = sizeOf("0", "0", "0") }),
			want:   want{},
		},
		"ChartNotResolved": {
			reason: "Nothing is granted that cannot be pinned; the registry's own words say why.",
			state:  tenant(with(asks(dev)), func(s *State) { s.Chart, s.ChartProblem = nil, "registry.example: 401 Unauthorized" }),
			want:   want{reason: "ChartNotResolved", message: "registry.example: 401 Unauthorized"},
		},
		"Closed": {
			reason: "A tenant that is being deleted takes nothing.",
			state:  tenant(with(asks(dev)), func(s *State) { s.Closed = "tenant acme is being deleted" }),
			want:   want{reason: "TenantNotReady", message: "tenant acme is being deleted"},
		},

		// The order of the rules: each state breaks a rule and all after it.
		"PlaceBeforeLimit": {
			reason: "Placement comes before the quota.",
			state:  tenant(limit(0), with(asks(dev, in("edge"), docker, sized(sizeOf("1", "1Ti", "1Ti"))))),
			want:   want{reason: "UnknownContext", placing: true, message: `context "edge" not found: tenant acme has no contexts; apply a Context of that name, or leave out spec.contextRef`},
		},
		"LimitBeforeDocker": {
			reason: "The limit comes before the docker sidecar.",
			state:  tenant(limit(0), with(asks(dev, docker, sized(sizeOf("1", "1Ti", "1Ti"))))),
			want:   want{reason: "EnvironmentLimitReached", message: "tenant acme has 0 of at most 0 environments: delete one, or ask the operator to raise the Tenant's spec.quota.maxEnvironments"},
		},
		"DockerBeforeFloor": {
			reason: "The docker sidecar comes before the floor.",
			state:  tenant(with(asks(dev, docker, sized(sizeOf("1", "1Ti", "1Ti"))))),
			want:   want{reason: "DockerDenied", message: "tenant acme may not run the privileged docker sidecar: set spec.docker.enabled to false, or ask the operator to set the Tenant's spec.docker to Allowed"},
		},
		"FloorBeforeCap": {
			reason: "The floor comes before the cap.",
			state:  tenant(with(asks(dev, sized(sizeOf("1", "1Ti", "1Ti"))))),
			want:   want{reason: "BelowFloor", message: "cpu 1 is below the 4 that the runtime needs, 3 short: raise spec.size.cpu"},
		},
		"CapBeforeTotal": {
			reason: "The cap comes before the total.",
			state:  tenant(with(asks(dev, sized(sizeOf("17", "16Gi", "2Gi")))), func(s *State) { s.Quota.Total, s.Chart = sizeOf("1", "1Gi", "1Gi"), nil }),
			want: want{reason: "OverEnvironmentCap",
				message: "cpu 17 is over the 16 that one environment of tenant acme may have, 1 too much: lower spec.size.cpu, or ask the operator to raise the Tenant's spec.quota.perEnvironment.cpu"},
		},
		"TotalBeforeChart": {
			reason: "The total comes before the chart, so that a registry that is down hides no number.",
			state:  tenant(with(asks(dev)), func(s *State) { s.Quota.Total, s.Chart = sizeOf("1", "1Gi", "1Gi"), nil }),
			want: want{reason: "OverTenantTotal",
				message: "cpu of tenant acme would be 4 (4 for this environment and 0 for 0 others), the budget is 1, 3 too much: lower spec.size.cpu, delete an environment, or ask the operator to raise the Tenant's spec.quota.total.cpu"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ds := Decide(tc.state)
			have := want{}
			d := ds[len(ds)-1]
			if d.Refusal != nil {
				have = want{reason: d.Refusal.Reason, message: d.Refusal.Message, placing: d.Refusal.Placing}
				if d.Held != nil {
					t.Errorf("%s: refused, and holds %+v", tc.reason, d.Held)
				}
			} else {
				have.context, have.why = d.Held.Grant.Context, d.Held.Grant.Reason
			}
			if diff := cmp.Diff(tc.want, have, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: -want, +have:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDecideGrantsAllThatWasAskedFor(t *testing.T) {
	s := tenant(with(asks("dev", docker, noSize)), func(s *State) { s.Docker = steading.DockerAllowed })
	want := v1alpha1.Grant{
		Context: "platform", Reason: steading.PlacementPlatformFallback, Version: "1.4.2", Docker: true,
		Caps: sizeOf("16", "36864Mi", "72Gi"), Chart: pin,
	}
	if diff := cmp.Diff(&Holding{Grant: want, Request: s.Applicants[0].Request}, Decide(s)[0].Held); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
}
