package environment

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
)

// TestDesiredNeverShrinks tries every subset of observed children, each ready or not, with every kind of answer from
// admission and every spec: what is observed stays desired, and nothing is ready before every stage is there.
func TestDesiredNeverShrinks(t *testing.T) {
	answers := map[string]func(*runtimev1.Placement){
		"Silent":  func(*runtimev1.Placement) {},
		"Granted": grant,
		"Refused": func(p *runtimev1.Placement) {
			p.Status.AtProvider.Refusal = &runtimev1.Refusal{Reason: string(steading.ReasonEnvironmentLimit), Message: "10 of 10"}
		},
		"RefusedAfterGrant": func(p *runtimev1.Placement) {
			grant(p)
			p.Status.AtProvider.Refusal = &runtimev1.Refusal{Reason: string(steading.ReasonOverTenantTotal), Message: "over"}
		},
		"GrantedRecord":    func(p *runtimev1.Placement) { p.Status.AtProvider.Grant = &runtimev1.Grant{} },
		"Exposable":        exposable,
		"GrantedNoChart":   func(p *runtimev1.Placement) { grant(p); p.Status.AtProvider.Grant.Chart = nil },
		"GrantedNoVersion": func(p *runtimev1.Placement) { grant(p); p.Status.AtProvider.Grant.Version = "" },
		"GrantedNoTenant":  func(p *runtimev1.Placement) { grant(p); p.Status.AtProvider.Tenant = nil },
	}
	for _, typ := range []steading.EnvironmentType{steading.TypeRuntime, steading.TypeLocalAgent} {
		for _, version := range []string{"", "1.4.2", "1.4.3"} {
			for _, state := range []steading.EnvironmentState{steading.StateRunning, steading.StateStopped, steading.StatePlanned} {
				for answer, say := range answers {
					for bits := range 1 << 8 {
						spec := steading.EnvironmentSpec{Type: typ, Version: version, State: state, Expose: mcp()}
						name := fmt.Sprintf("%s/%s/%s/%s/%08b", typ, version, state, answer, bits)
						checkShrink(t, name, subset(t, spec, say, bits))
					}
				}
			}
		}
	}
}

// subset is an input with the children that bits 0 to 3 choose, each ready as bits 4 to 7 say.
func subset(t *testing.T, spec steading.EnvironmentSpec, say func(*runtimev1.Placement), bits int) compose.Input {
	t.Helper()
	in := compose.Input{Composite: composite(t, spec, steading.EnvironmentStatus{}), Children: map[string]*unstructured.Unstructured{}}
	full := map[string]any{
		placement: &runtimev1.Placement{TypeMeta: typeMeta(runtimev1.PlacementKind), Spec: runtimev1.PlacementSpec{ForProvider: runtimev1.PlacementParameters{Request: runtimev1.Request{Version: "1.4.2"}}}},
		boundary:  &runtimev1.Boundary{TypeMeta: typeMeta(runtimev1.BoundaryKind), Spec: runtimev1.BoundarySpec{ForProvider: runtimev1.BoundaryParameters{Namespace: "acme-dev", Caps: *steading.MustResources("8", "20Gi", "40Gi")}}},
		release:   &runtimev1.Release{TypeMeta: typeMeta(runtimev1.ReleaseKind), Spec: runtimev1.ReleaseSpec{ForProvider: runtimev1.ReleaseParameters{Version: "1.4.2"}}},
		edge:      &runtimev1.Edge{TypeMeta: typeMeta(runtimev1.EdgeKind)},
	}
	for i, name := range []string{placement, boundary, release, edge} {
		if bits&(1<<i) == 0 {
			continue
		}
		isReady := bits&(1<<(i+4)) != 0
		switch o := full[name].(type) {
		case *runtimev1.Placement:
			say(o)
			if isReady {
				ready(o)
			}
		case *runtimev1.Boundary:
			if isReady {
				ready(o)
			}
		case *runtimev1.Release:
			if isReady {
				deployed(o)
			}
		case *runtimev1.Edge:
			if isReady {
				ready(o)
			}
		}
		in.Children[name] = object(t, full[name])
	}
	return in
}

func checkShrink(t *testing.T, name string, in compose.Input) {
	t.Helper()
	out, err := Compose(in)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for child := range in.Children {
		if child == edge && strings.HasPrefix(name, string(steading.TypeLocalAgent)) {
			continue // An agent's type is immutable and exposes nothing: it gave the Edge up on purpose.
		}
		if _, ok := out.Children[child]; !ok {
			t.Fatalf("%s: observed %s is not desired, so it would be deleted", name, child)
		}
	}
	for child, c := range out.Children {
		if !slices.Contains(c.Object.GetFinalizers(), names.Finalizer) {
			t.Fatalf("%s: %s is desired without its finalizer, so Crossplane would take that from it", name, child)
		}
		if out.Ready && !c.Ready && child != edge {
			t.Fatalf("%s: ready although %s is not", name, child)
		}
		if _, exists := in.Children[child]; c.Ready && !exists {
			t.Fatalf("%s: %s is ready before it exists", name, child)
		}
	}
}

// TestSameInputSameOutput runs random inputs twice and expects the same bytes, and the same desired children when they
// are fed back as observed.
func TestSameInputSameOutput(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		spec := running()
		in := subset(t, spec, grant, r.IntN(256))
		a, b := encoded(t, in), encoded(t, in)
		if a != b {
			t.Fatalf("two runs differ:\n%s\n%s", a, b)
		}
	}
}

func encoded(t *testing.T, in compose.Input) string {
	t.Helper()
	out, err := Compose(in)
	if err != nil {
		t.Fatal(err)
	}
	j, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(j)
}
