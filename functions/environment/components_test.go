package environment

import (
	"fmt"
	"slices"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
)

var (
	db    = steading.Component{Name: "db", Chart: "postgres", Version: "1.0.0"}
	cache = steading.Component{Name: "cache", Chart: "redis", Version: "2.0.0"}
)

// larger is the same component with values.
func larger(c steading.Component) steading.Component {
	c.Values = &apiextensionsv1.JSON{Raw: []byte(`{"replicas":2}`)}
	return c
}

func withComponents(cs ...steading.Component) steading.EnvironmentSpec {
	s := running()
	s.Components = cs
	return s
}

// grantComponents as they are asked for.
func grantComponents(p *runtimev1.Placement) {
	grant(p)
	for _, r := range p.Spec.ForProvider.Request.Components {
		p.Status.AtProvider.Grant.Components = append(p.Status.AtProvider.Grant.Components,
			r.Granted(runtimev1.Chart{Repository: "example.com/components/" + r.Chart, Version: r.Version, Digest: "sha256:" + r.Name}))
	}
}

// componentDeployed as it is asked for.
func componentDeployed(r *runtimev1.Release) {
	f := r.Spec.ForProvider
	r.Status.AtProvider = runtimev1.ReleaseObservation{
		State:    runtimev1.ReleaseDeployed,
		Deployed: &runtimev1.Deployed{Version: f.Chart.Version, Power: f.Power, Caps: f.Caps, Revision: 1},
	}
	ready(r)
}

// provisionedWith is an environment with components that has come all the way.
func provisionedWith(t *testing.T, cs ...steading.Component) *life {
	t.Helper()
	l := begin(t, withComponents(cs...)).want(steading.EnvironmentPending, false, placement)
	edit(t, l.in, placement, grantComponents)
	children := []string{placement, boundary, release}
	for _, c := range cs {
		children = append(children, childOf(c.Name))
	}
	l.run().want(steading.EnvironmentProvisioning, false, children...)
	edit(t, l.in, boundary, func(b *runtimev1.Boundary) { ready(b) })
	l.run().want(steading.EnvironmentProvisioning, false, children...)
	edit(t, l.in, release, deployed)
	l.run().want(steading.EnvironmentRunning, false, children...)
	for _, c := range cs {
		edit(t, l.in, childOf(c.Name), componentDeployed)
	}
	return l.run().want(steading.EnvironmentRunning, true, children...)
}

// database is what component db is asked for as.
func (l *life) database() runtimev1.ReleaseParameters {
	l.t.Helper()
	child := childOf("db")
	desired := compose.Input{Children: map[string]*unstructured.Unstructured{child: object(l.t, l.out.Children[child].Object)}}
	r, err := compose.DecodeChild[runtimev1.Release](desired, child)
	if err != nil {
		l.t.Fatal(err)
	}
	return r.Spec.ForProvider
}

func (l *life) states() []string {
	var all []string
	for _, c := range l.status().Components {
		all = append(all, fmt.Sprintf("%s %s %s", c.Name, c.Version, c.State))
	}
	return all
}

func (l *life) wantStates(states ...string) *life {
	l.t.Helper()
	if have := l.states(); !slices.Equal(have, states) {
		l.t.Fatalf("components: have %q, want %q", have, states)
	}
	return l
}

func TestComponentsComeUpBesideTheRuntime(t *testing.T) {
	from := db
	from.ValuesFrom = []steading.ValuesFrom{{Kind: "Secret", Name: "s", Key: "k"}}
	l := provisionedWith(t, larger(from), cache).wantEvent("ComponentRunning").wantStates("db 1.0.0 Running", "cache 2.0.0 Running")
	p := l.database()
	if p.ReleaseName != "acme-db" || p.Namespace != "acme-dev" || p.Chart.Digest != "sha256:db" || p.Component.Name != "db" || p.Version != "" ||
		string(p.Values.Raw) != `{"replicas":2}` || !slices.Equal(p.Component.ValuesFrom, from.ValuesFrom) {
		t.Errorf("component db is asked for as %+v", p)
	}
	if name := l.out.Children[childOf("db")].Object.GetName(); name != "acme-dev.db" {
		t.Errorf("it is called %s", name)
	}
	if c := condition(l.out, steading.ConditionComponentsDeployed); c.Status != "True" || c.Reason != steading.ReasonDeployed {
		t.Errorf("ComponentsDeployed: %+v", c)
	}
	if l.run(); len(l.out.Events) != 0 {
		t.Errorf("a second run says the same events again: %+v", l.out.Events)
	}
}

func TestEnvironmentWithoutComponentsHasNoSuchCondition(t *testing.T) {
	l := provisioned(t)
	if c := condition(l.out, steading.ConditionComponentsDeployed); c.Type != "" {
		t.Errorf("ComponentsDeployed: %+v", c)
	}
	l = provisionedWith(t, db)
	l.setSpec(func(s *steading.EnvironmentSpec) { s.Components = nil })
	xr, err := compose.DecodeComposite[steading.Environment](l.in)
	if err != nil {
		t.Fatal(err)
	}
	xr.Status.SetConditions(condition(l.out, steading.ConditionComponentsDeployed))
	l.in.Composite = composite(t, xr.Spec, xr.Status)
	l.run()
	if c := condition(l.out, steading.ConditionComponentsDeployed); c.Status != "True" || c.Reason != steading.ReasonNoComponents {
		t.Errorf("a condition that Crossplane would keep as it was is %+v", c)
	}
}

func TestFailedComponentHoldsBackReadinessAndLetsTheRuntimeServe(t *testing.T) {
	l := provisionedWith(t, db)
	fail := func(state runtimev1.ReleaseState) {
		edit(t, l.in, childOf("db"), func(r *runtimev1.Release) {
			o := &r.Status.AtProvider
			o.State, o.Reason, o.Message = state, string(steading.ReasonImagePull), "no such image"
			r.SetConditions(xpv2.Unavailable())
		})
		l.run().want(steading.EnvironmentRunning, false, placement, boundary, release, childOf("db"))
	}
	fail(runtimev1.ReleaseFailed)
	l.wantStates("db 1.0.0 Failed").wantEvent("ComponentFailed")
	if c := condition(l.out, steading.ConditionComponentsDeployed); c.Status != "False" || c.Reason != steading.ReasonImagePull || c.Message != "component db: no such image" || l.status().Message != c.Message {
		t.Errorf("ComponentsDeployed: %+v, message %q", c, l.status().Message)
	}
	fail(runtimev1.ReleaseRolledBack)
	l.wantStates("db 1.0.0 RolledBack").wantEvent("ComponentRolledBack")
}

func TestRefusedComponentKeepsWhatRuns(t *testing.T) {
	l := provisionedWith(t, db)
	l.setSpec(func(s *steading.EnvironmentSpec) { s.Components = []steading.Component{larger(db), cache} }).run()
	edit(t, l.in, placement, func(p *runtimev1.Placement) {
		p.Status.AtProvider.Refusal = &runtimev1.Refusal{Reason: string(steading.ReasonBelowFloor), Message: "below"}
	})
	l.run().want(steading.EnvironmentRunning, false, placement, boundary, release, childOf("db")).wantStates("db 1.0.0 Running", "cache  Pending")
	if p := l.database(); p.Values != nil {
		t.Errorf("values %s were deployed without being admitted", p.Values.Raw)
	}
	edit(t, l.in, placement, func(p *runtimev1.Placement) { grantComponents(p) })
	l.run().want(steading.EnvironmentRunning, false, placement, boundary, release, childOf("db"), childOf("cache"))
	if p := l.database(); string(p.Values.Raw) != `{"replicas":2}` {
		t.Errorf("values %s, want those that were admitted", p.Values.Raw)
	}
}

func TestRemovedComponentIsUninstalled(t *testing.T) {
	l := provisionedWith(t, db, cache)
	before := l.in.Children[childOf("db")].DeepCopy()
	l.setSpec(func(s *steading.EnvironmentSpec) { s.Components = []steading.Component{cache} }).run()
	l.want(steading.EnvironmentRunning, false, placement, boundary, release, childOf("cache")).
		wantStates("cache 2.0.0 Running", "db 1.0.0 Deleting").wantEvent("ComponentDeleting")
	l.in.Children[childOf("db")] = before
	l.run().wantStates("cache 2.0.0 Running", "db 1.0.0 Deleting")
	delete(l.in.Children, childOf("db"))
	l.run().wantStates("cache 2.0.0 Running").wantEvent("ComponentRemoved")
}

func TestStoppedComponents(t *testing.T) {
	l := provisionedWith(t, db)
	l.setSpec(func(s *steading.EnvironmentSpec) { s.State = steading.StateStopped }).run()
	if p := l.database(); p.Power != steading.PowerStopped || l.out.Ready {
		t.Fatalf("power %s, ready %t", p.Power, l.out.Ready)
	}
	edit(t, l.in, release, deployed)
	edit(t, l.in, childOf("db"), componentDeployed)
	l.run().want(steading.EnvironmentRunning, true, placement, boundary, release, childOf("db")).
		wantStates("db 1.0.0 Stopped").wantEvent("ComponentStopped")
	if c := condition(l.out, steading.ConditionComponentsDeployed); c.Status != "True" || c.Reason != steading.ReasonStopped {
		t.Errorf("ComponentsDeployed: %+v", c)
	}
}

func TestPlanningChangesNoComponent(t *testing.T) {
	l := provisionedWith(t, db)
	l.setSpec(func(s *steading.EnvironmentSpec) {
		s.State, s.Components = steading.StatePlanned, []steading.Component{larger(cache)}
	}).run()
	if _, ok := l.out.Children[childOf("cache")]; ok {
		t.Error("a planned component is deployed")
	}
	if p := l.database(); p.Power != steading.PowerRunning || p.Chart.Digest != "sha256:db" {
		t.Errorf("component db was changed to %+v", p)
	}
	if r := l.out.Children[placement].Object.(*runtimev1.Placement).Spec.ForProvider.Request; len(r.Components) != 1 || r.Components[0].Name != "cache" { //nolint:forcetypeassert // A test.
		t.Errorf("the plan is asked for with %+v", r.Components)
	}
}

// TestComponentsNeverShrink tries every subset of observed stages and components, each ready or not, with answers from
// admission and claims of all kinds: what is observed stays desired, but for a component that the claim gave up.
func TestComponentsNeverShrink(t *testing.T) {
	answers := map[string]func(*runtimev1.Placement){
		"Silent":  func(*runtimev1.Placement) {},
		"Granted": grantComponents,
		"NoneGranted": func(p *runtimev1.Placement) {
			grantComponents(p)
			p.Status.AtProvider.Grant.Components = nil
		},
		"Refused": func(p *runtimev1.Placement) {
			p.Status.AtProvider.Refusal = &runtimev1.Refusal{Reason: string(steading.ReasonComponentRefused), Message: "no such chart"}
		},
		"RefusedAfterGrant": func(p *runtimev1.Placement) {
			grantComponents(p)
			p.Status.AtProvider.Refusal = &runtimev1.Refusal{Reason: string(steading.ReasonBelowFloor), Message: "below"}
		},
		"GrantedRecord": func(p *runtimev1.Placement) { p.Status.AtProvider.Grant = &runtimev1.Grant{} },
	}
	claims := map[string][]steading.Component{"None": nil, "One": {db}, "Both": {db, cache}, "Changed": {larger(db), cache}}
	for answer, say := range answers {
		for claim, cs := range claims {
			for _, state := range []steading.EnvironmentState{steading.StateRunning, steading.StateStopped, steading.StatePlanned} {
				for bits := range 1 << 7 {
					spec := withComponents(cs...)
					spec.State = state
					checkComponents(t, fmt.Sprintf("%s/%s/%s/%07b", answer, claim, state, bits), spec, componentSubset(t, spec, say, bits))
				}
			}
		}
	}
}

// componentSubset is an input with a Placement, and with the boundary, db and cache that bits 0 to 2 choose, ready as bits 3
// to 5 say. Bit 6 is whether db and cache were asked for as they were before the claim changed.
func componentSubset(t *testing.T, spec steading.EnvironmentSpec, say func(*runtimev1.Placement), bits int) compose.Input {
	t.Helper()
	in := compose.Input{Composite: composite(t, spec, steading.EnvironmentStatus{}), Children: map[string]*unstructured.Unstructured{}}
	p := &runtimev1.Placement{TypeMeta: typeMeta(runtimev1.PlacementKind)}
	p.Spec.ForProvider.Request = runtimev1.Request{Version: "1.4.2", Components: requestComponents(spec.Components)}
	if bits&(1<<6) != 0 {
		p.Spec.ForProvider.Request.Components = requestComponents([]steading.Component{db, cache})
	}
	say(p)
	in.Children[placement] = object(t, p)
	if bits&1 != 0 {
		b := &runtimev1.Boundary{TypeMeta: typeMeta(runtimev1.BoundaryKind)}
		b.Spec.ForProvider.Caps = *steading.MustResources("8", "20Gi", "40Gi")
		if bits&(1<<3) != 0 {
			ready(b)
		}
		in.Children[boundary] = object(t, b)
	}
	for i, c := range []steading.Component{db, cache} {
		if bits&(1<<(i+1)) == 0 {
			continue
		}
		r := &runtimev1.Release{TypeMeta: typeMeta(runtimev1.ReleaseKind)}
		r.Spec.ForProvider = runtimev1.ReleaseParameters{
			Component: &runtimev1.ReleaseComponent{Name: c.Name}, Chart: runtimev1.Chart{Version: c.Version},
			Caps: *steading.MustResources("8", "20Gi", "40Gi"), Power: steading.PowerRunning,
		}
		if bits&(1<<(i+4)) != 0 {
			componentDeployed(r)
		}
		in.Children[childOf(c.Name)] = object(t, r)
	}
	return in
}

func checkComponents(t *testing.T, name string, spec steading.EnvironmentSpec, in compose.Input) {
	t.Helper()
	out, err := Compose(in)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	claimed := map[string]bool{}
	for _, c := range spec.Components {
		claimed[childOf(c.Name)] = true
	}
	planned := spec.State == steading.StatePlanned
	for child := range in.Children {
		_, desired := out.Children[child]
		givenUp := (child == childOf("db") || child == childOf("cache")) && !claimed[child] && !planned
		if desired == givenUp {
			t.Fatalf("%s: observed %s is desired: %t", name, child, desired)
		}
	}
	for child, c := range out.Children {
		if out.Ready && !c.Ready && child != edge {
			t.Fatalf("%s: ready although %s is not", name, child)
		}
		if _, exists := in.Children[child]; c.Ready && !exists {
			t.Fatalf("%s: %s is ready before it exists", name, child)
		}
	}
	for child := range claimed {
		if _, there := out.Children[child]; out.Ready && !planned && !there {
			t.Fatalf("%s: ready without %s", name, child)
		}
	}
}
