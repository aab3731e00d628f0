package placement

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/floor"
)

func componentAsked(name string, values ...string) v1alpha1.ComponentRequest {
	r := v1alpha1.ComponentRequest{Name: name, Chart: "postgres", Version: "1.0.0"}
	for _, v := range values {
		r.Values = &apiextensionsv1.JSON{Raw: []byte(v)}
	}
	return r
}

func components(rs ...v1alpha1.ComponentRequest) func(*v1alpha1.Request) {
	return func(r *v1alpha1.Request) { r.Components = rs }
}

func granting(r v1alpha1.ComponentRequest) *v1alpha1.Chart {
	return &v1alpha1.Chart{Repository: "a/" + r.Chart, Version: r.Version, Digest: "sha256:" + r.Version}
}

// needing is a component that was found, and limits one pod, to 1Gi of memory.
func needing(r v1alpha1.ComponentRequest, cpu, storage string) Candidate {
	n := &floor.Needs{Storage: resource.MustParse(storage), Pods: []floor.Pods{{Count: 1, Containers: []steading.Resources{*sizeOf(cpu, "1Gi", "0")}}}}
	return Candidate{Request: r, Chart: granting(r), Needs: n}
}

func (a Applicant) finds(cs ...Candidate) Applicant {
	a.Components = cs
	return a
}

func TestComponentsAreAdmittedWithTheirEnvironment(t *testing.T) {
	db := componentAsked("db")
	room := sizeOf("5", "17Gi", "3Gi")
	refused := Candidate{Request: db, Refusal: &v1alpha1.Refusal{Reason: "ComponentRefused", Message: "component db: no such chart"}}
	unknown := Candidate{Request: db, Chart: granting(db)}

	cases := map[string]struct {
		reason  string
		dev     Applicant
		granted []string
		refusal string
		waits   bool
	}{
		"Fits":      {reason: "Its chart is pinned.", dev: asks("dev", components(db), sized(room)).finds(needing(db, "1", "1Gi")), granted: []string{"db a/postgres sha256:1.0.0"}},
		"BelowCPU":  {reason: "What it needs is added to what the runtime needs.", dev: asks("dev", components(db), sized(room)).finds(needing(db, "1500m", "1Gi")), refusal: "BelowFloor: cpu 5 is below the 5500m that the runtime (4) and component db (1500m) need, 500m short: raise spec.size.cpu"},
		"BelowDisk": {reason: "Of storage, too.", dev: asks("dev", components(db), sized(room)).finds(needing(db, "1", "2Gi")), refusal: "BelowFloor: storage 3Gi is below the 4Gi that the runtime (2Gi) and component db (2Gi) need, 1Gi short: raise spec.size.storage"},
		"NotCounted": {reason: "What cannot be told is not counted.", dev: asks("dev", components(db)).finds(unknown),
			granted: []string{"db a/postgres sha256:1.0.0"}},
		"Refused": {reason: "One that cannot be deployed refuses the whole.", dev: asks("dev", components(db)).finds(refused), refusal: "ComponentRefused: component db: no such chart"},
		"Asking":  {reason: "A registry that is being asked is waited for.", dev: asks("dev", components(db)).finds(Candidate{Request: db}), waits: true},
		"Changed": {reason: "Other values are admitted again.", dev: holding(db, room).now(components(componentAsked("db", `{"a":1}`))).finds(needing(componentAsked("db", `{"a":1}`), "2", "1Gi")),
			granted: []string{"db a/postgres sha256:1.0.0"}, refusal: "BelowFloor: cpu 5 is below the 6 that the runtime (4) and component db (2) need, 1 short: raise spec.size.cpu"},
		"Removed": {reason: "What is given up is taken out of the grant.", dev: holding(db, room).now(components())},
		"Same":    {reason: "What was granted is not decided on again.", dev: holding(db, room).finds(refused), granted: []string{"db a/postgres sha256:1.0.0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Decide(tenant(with(tc.dev)))[0]
			var have []string
			if d.Held != nil {
				for _, g := range d.Held.Grant.Components {
					have = append(have, fmt.Sprintf("%s %s %s", g.Name, g.Chart.Repository, g.Chart.Digest))
				}
			}
			if diff := cmp.Diff(tc.granted, have); diff != "" {
				t.Errorf("%s -want, +have:\n%s", tc.reason, diff)
			}
			refusal := ""
			if d.Refusal != nil {
				refusal = d.Refusal.Reason + ": " + d.Refusal.Message
			}
			if refusal != tc.refusal || d.Undecided != tc.waits {
				t.Errorf("%s refusal %q, undecided %t", tc.reason, refusal, d.Undecided)
			}
		})
	}
}

// TestWhatIsUndecidedKeepsWhatItHolds: it may be refused when the registry has answered, and then holds on to it.
func TestWhatIsUndecidedKeepsWhatItHolds(t *testing.T) {
	db := componentAsked("db")
	budget := func(cpu string) func(*State) { return func(s *State) { s.Quota.Total = sizeOf(cpu, "1Ti", "1Ti") } }
	cpu := func(cpu string) func(*v1alpha1.Request) { return sized(sizeOf(cpu, "16Gi", "2Gi")) }
	room, place := on(Context{Name: "edge"}), on(Context{Name: "edge", Max: full(1)})
	asking := func(a Applicant, edit ...func(*v1alpha1.Request)) Applicant {
		return a.now(append(edit, components(db))...).finds(Candidate{Request: db})
	}
	large, record := asks("a", cpu("16")).holds("edge"), asks("a", versionless).holds("")
	b := asks("b", in("edge"), cpu("12")).at(time.Second)

	cases := map[string]struct {
		reason string
		state  State
		want   string
	}{
		"Smaller": {"A smaller size frees nothing before it is granted.", tenant(budget("16"), room, with(asking(large, cpu("4")), b)), "OverTenantTotal"},
		"OverCap": {"Nor does one that is refused in the end.", tenant(budget("16"), room, with(asking(large, cpu("17")), b)), "OverTenantTotal"},
		"Larger":  {"A larger one is kept for it.", tenant(budget("20"), room, with(asking(asks("a").holds("edge"), cpu("10")), b)), "OverTenantTotal"},
		"Chart": {"The runtime's chart is waited for likewise.",
			tenant(budget("16"), room, with(large.now(version("1.5.0"), cpu("4")), b), func(s *State) { s.Chart = nil }), "OverTenantTotal"},
		"Place":  {"It stays where it is.", tenant(place, with(asking(large, cpu("4")), b)), "ContextFull"},
		"Placed": {"A record keeps the place that is found for it.", tenant(place, with(asking(record, version("1.4.2")), b)), "ContextFull"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ds := Decide(tc.state)
			if !ds[0].Undecided {
				t.Fatalf("%s a: %+v", tc.reason, ds[0])
			}
			have := ""
			if ds[1].Refusal != nil {
				have = ds[1].Refusal.Reason
			}
			if have != tc.want {
				t.Errorf("%s b: %q, want %q", tc.reason, have, tc.want)
			}
		})
	}
}

// holding is an environment with a component that was granted.
func holding(r v1alpha1.ComponentRequest, size *steading.Resources) Applicant {
	a := asks("dev", components(r), sized(size)).holds("platform")
	a.Held.Grant.Components = []v1alpha1.GrantedComponent{r.Granted(*granting(r))}
	return a
}

func TestPlanTellsOfComponents(t *testing.T) {
	db, old := componentAsked("db"), componentAsked("old")
	a := holding(old, sizeOf("5", "17Gi", "3Gi")).now(components(db), dryRun).finds(needing(db, "1", "1Gi"))
	plan := strings.Join(Decide(tenant(with(a)))[0].Plan, "\n")
	for _, want := range []string{"deploy component db as acme-db from chart a/postgres 1.0.0", "uninstall component old"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan does not say %q:\n%s", want, plan)
		}
	}
}

// registries answer by repository: a chart, or why not.
type registries struct {
	answers map[string]any
	asked   []ChartSource
}

func (r *registries) Resolve(_ string, s ChartSource) (ResolvedChart, error) {
	r.asked = append(r.asked, s)
	switch a := r.answers[s.Repository].(type) {
	case ResolvedChart:
		if s.Pinned != "" {
			a.Digest = s.Pinned
		}
		return a, nil
	case error:
		return ResolvedChart{}, a
	}
	return ResolvedChart{}, &AbsentError{errors.New("the registry has no such version")}
}

func TestComponentIsTakenFromTheFirstRepositoryThatHasIt(t *testing.T) {
	db := componentAsked("db")
	broken := db
	broken.MoreValues = true
	found := ResolvedChart{Digest: "sha256:found"}
	unclear := ResolvedChart{Digest: "sha256:found", NeedsProblem: "cannot tell"}
	cases := map[string]struct {
		reason  string
		asked   v1alpha1.ComponentRequest
		pin     *v1alpha1.Chart
		answers map[string]any
		chart   string
		refusal string
	}{
		"First":  {reason: "The first one wins.", asked: db, answers: map[string]any{"a/postgres": found, "b/postgres": found}, chart: "a/postgres sha256:found"},
		"Second": {reason: "One that does not have it is passed over.", asked: db, answers: map[string]any{"b/postgres": found}, chart: "b/postgres sha256:found"},
		"Nowhere": {reason: "All that were asked are named.", asked: db,
			refusal: "ComponentRefused: component db: chart postgres version 1.0.0 is in none of the repositories that the operator allows (a/postgres, b/postgres)"},
		"Unclear":     {reason: "One that cannot say is not passed over: the next may have something else under that name.", asked: db, answers: map[string]any{"a/postgres": errors.New("401"), "b/postgres": found}, refusal: "ChartNotResolved: component db: 401"},
		"Asking":      {reason: "It is waited for.", asked: db, answers: map[string]any{"a/postgres": ErrAsking, "b/postgres": found}},
		"Pinned":      {reason: "What was pinned stays where it is, whatever the tag means by now.", asked: db, pin: &v1alpha1.Chart{Repository: "b/postgres", Version: "1.0.0", Digest: "sha256:old"}, answers: map[string]any{"a/postgres": found, "b/postgres": found}, chart: "b/postgres sha256:old"},
		"NotAllowed":  {reason: "Unless the operator does not allow its repository any more.", asked: db, pin: &v1alpha1.Chart{Repository: "c/postgres", Version: "1.0.0", Digest: "sha256:old"}, answers: map[string]any{"a/postgres": found, "c/postgres": found}, chart: "a/postgres sha256:found"},
		"Needs":       {reason: "What a chart needs has to be told.", asked: db, answers: map[string]any{"a/postgres": unclear}, refusal: "ComponentRefused: component db: cannot tell"},
		"NeedsUnread": {reason: "But where that may depend on values that are not read here.", asked: broken, answers: map[string]any{"a/postgres": unclear}, chart: "a/postgres sha256:found"},
		"TooLong":     {reason: "Values are kept while the registry is asked.", asked: componentAsked("db", `{"a":"`+strings.Repeat("x", maxValues)+`"}`), refusal: "ComponentRefused: component db: its values are"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &pass{Reconciler: &Reconciler{charts: &registries{answers: tc.answers}}, tenant: "acme", config: &v1alpha1.ClusterProviderConfig{
				Spec: v1alpha1.ProviderConfigSpec{Components: []v1alpha1.ComponentRepository{{Prefix: "a"}, {Prefix: "b"}}},
			}}
			c := p.candidate(tc.asked, tc.pin)
			chart, refusal := "", ""
			if c.Chart != nil {
				chart = c.Chart.Repository + " " + c.Chart.Digest
			}
			if c.Refusal != nil {
				refusal = c.Refusal.Reason + ": " + c.Refusal.Message
			}
			if chart != tc.chart || !strings.HasPrefix(refusal, tc.refusal) || (tc.refusal == "") != (refusal == "") {
				t.Errorf("%s chart %q, refusal %q", tc.reason, chart, refusal)
			}
		})
	}
}

// TestLedgerHoldsNoValues: they may be long, and the grant tells by a digest what was asked for.
func TestLedgerHoldsNoValues(t *testing.T) {
	db := componentAsked("db", `{"a":1}`)
	p := &pass{decisions: []Decision{{UID: "dev", Held: holding(db, small()).Held}}}
	e := p.entries()[0]
	if len(e.Request.Components) != 0 || len(e.Grant.Components) != 1 {
		t.Errorf("entry %+v", e)
	}
	if !db.GrantedBy(e.Grant.Components[0]) || componentAsked("db").GrantedBy(e.Grant.Components[0]) {
		t.Error("the grant does not tell what was asked for")
	}
	if same := componentAsked("db", ` {"a": 1.0}`); !same.GrantedBy(e.Grant.Components[0]) {
		t.Error("values that are written otherwise are other values")
	}
}

// TestResolverForgetsComponents: there is an answer for all values that a tenant tries.
func TestResolverForgetsComponents(t *testing.T) {
	clock := clocktesting.NewFakeClock(epoch)
	r := NewResolver(nil, func(string) {}, clock)
	source := func(values string) ChartSource { return ChartSource{Values: values} }
	for i := range 3 {
		s := source(strconv.Itoa(i))
		if _, err := r.Resolve("acme", s); !errors.Is(err, ErrAsking) {
			t.Fatal(err)
		}
		r.learn(s, ResolvedChart{Digest: "sha256:a"}, nil)
	}
	clock.Step(componentIdle + 1)
	_, _ = r.Resolve("acme", source("3"))
	if len(r.answers) != 1 {
		t.Errorf("%d answers are kept, want the one that is asked for", len(r.answers))
	}
}
