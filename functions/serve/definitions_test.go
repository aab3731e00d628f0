package serve

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/steading-dev/steading/apis/definitions"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// crossplane calls a function as Crossplane does: it shows what is asked for until that is settled, and shows again what was
// asked for last, which it watches.
type crossplane struct {
	// functions are the replicas, which are called in turns.
	functions []*Function
	next      int
	clock     *clocktesting.FakeClock
	// defined are the definitions on its API server.
	defined map[string]*extv1.CustomResourceDefinition
	// watched was asked for last.
	watched map[string]*fnv1.ResourceSelector
	// calls of the last run.
	calls int
}

func newCrossplane() *crossplane {
	c := &crossplane{clock: clocktesting.NewFakeClock(time.Unix(0, 0)), defined: map[string]*extv1.CustomResourceDefinition{}}
	c.replicas(1)
	for _, k := range definitions.All() {
		c.defined[k.Definition] = &extv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: k.Definition},
			Spec: extv1.CustomResourceDefinitionSpec{Versions: []extv1.CustomResourceDefinitionVersion{
				{Name: k.Version, Served: true, Schema: &extv1.CustomResourceValidation{OpenAPIV3Schema: k.Schema.DeepCopy()}},
			}},
			Status: extv1.CustomResourceDefinitionStatus{Conditions: []extv1.CustomResourceDefinitionCondition{{Type: extv1.Established, Status: extv1.ConditionTrue}}},
		}
	}
	return c
}

// replicas of the function that Crossplane calls from now on.
func (c *crossplane) replicas(n int) {
	c.functions, c.next = nil, 0
	for range n {
		f := NewFunction(Composers(), NewMetrics(prometheus.NewRegistry()))
		f.served = newServed(c.clock)
		c.functions = append(c.functions, f)
	}
}

// age the definition of a name by a field of its spec, and return how to mend it.
func (c *crossplane) age(definition, field string) (mend func()) {
	s := c.defined[definition].Spec.Versions[0].Schema.OpenAPIV3Schema
	whole := s.DeepCopy()
	delete(s.Properties["spec"].Properties, field)
	return func() { whole.DeepCopyInto(s) }
}

// compose as a composite is.
func (c *crossplane) compose(t *testing.T, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	t.Helper()
	req.Meta.Capabilities = []fnv1.Capability{fnv1.Capability_CAPABILITY_CAPABILITIES, fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES}
	seeds := c.resources(t, c.watched)
	req.RequiredResources = seeds
	c.calls = 0
	var asked *fnv1.Requirements
	for range 6 {
		f := c.functions[c.next%len(c.functions)]
		c.next++
		rsp, err := f.RunFunction(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		c.calls++
		asks := rsp.GetRequirements()
		seeded := c.calls == 1 && (len(asks.GetResources()) == 0 || len(c.watched) > 0)
		if proto.Equal(asks, asked) || seeded {
			c.watched = asks.GetResources()
			return rsp
		}
		asked = asks
		req.RequiredResources = c.resources(t, asks.GetResources())
		maps.Copy(req.RequiredResources, seeds)
		req.Context = rsp.GetContext()
	}
	t.Fatal("what the function asks for does not settle")
	return nil
}

func (c *crossplane) resources(t *testing.T, asked map[string]*fnv1.ResourceSelector) map[string]*fnv1.Resources {
	t.Helper()
	shown := map[string]*fnv1.Resources{}
	for name, s := range asked {
		shown[name] = &fnv1.Resources{}
		if crd := c.defined[s.GetMatchName()]; crd != nil {
			shown[name].Items = []*fnv1.Resource{{Resource: encoded(t, crd)}}
		}
	}
	return shown
}

func encoded(t *testing.T, v any) *structpb.Struct {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return resource.MustStructJSON(string(raw))
}

// running is a request about an environment that runs, with these conditions beside.
func running(t *testing.T, conditions ...string) *fnv1.RunFunctionRequest {
	t.Helper()
	req := request(xenvironment)
	conditions = append([]string{`{"type": "Ready", "status": "True"}`}, conditions...)
	req.GetObserved().GetComposite().GetResource().Fields["status"] = structpb.NewStructValue(resource.MustStructJSON(
		`{"phase": "Running", "namespace": "acme-dev", "claimConditionTypes": ["Placed"], "conditions": [` + strings.Join(conditions, ",") + `]}`))
	req.Observed.Resources = map[string]*fnv1.Resource{"placement": {Resource: resource.MustStructJSON(`{
	  "apiVersion": "runtime.steading.dev/v1alpha1", "kind": "Placement",
	  "metadata": {"namespace": "steading-system", "name": "acme-dev", "uid": "p", "labels": {"steading.dev/tenant": "acme", "other": "x"}},
	  "spec": {"forProvider": {"claim": {"namespace": "tenant-acme", "name": "dev"}}},
	  "status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)}}
	return req
}

// condition that a response has, as "status reason message".
func condition(rsp *fnv1.RunFunctionResponse) string {
	for _, c := range rsp.GetConditions() {
		if c.GetType() == string(steading.ConditionDefinitionsCurrent) {
			return strings.TrimSpace(strings.TrimPrefix(c.GetStatus().String(), "STATUS_CONDITION_") + " " + c.GetReason() + " " + c.GetMessage())
		}
	}
	return ""
}

// TestDefinitionsAreAskedForNowAndThen: at the first call and every five minutes, and not in between, since they make a call dear.
func TestDefinitionsAreAskedForNowAndThen(t *testing.T) {
	c := newCrossplane()
	steps := []struct {
		reason string
		after  time.Duration
		calls  int
	}{
		{"The first call asks.", 0, 2},
		{"The next knows, and what it is shown once more is asked for no more.", 0, 1},
		{"It does for a while.", 5*time.Minute - time.Second, 1},
		{"Then it asks again.", time.Second, 2},
		{"And knows again.", time.Second, 1},
	}
	for _, s := range steps {
		c.clock.Step(s.after)
		rsp := c.compose(t, request(xenvironment))
		if c.calls != s.calls || (len(c.watched) > 0) != (s.calls > 1) || rsp.GetDesired().GetResources()["placement"] == nil || condition(rsp) != "" {
			t.Errorf("%s It is called %d times, want %d; conditions %v", s.reason, c.calls, s.calls, rsp.GetConditions())
		}
	}
}

// TestHeldStaysAsItIs while a definition is older, and goes on as soon as it is not.
func TestHeldStaysAsItIs(t *testing.T) {
	cases := map[string]struct{ reason, definition, field, says string }{
		"Claim":    {"What a person writes would be lost.", "environments.steading.dev", "components", "Environment is older than function-steading and would lose spec.components: bring package configuration-steading"},
		"Composed": {"What is composed would be.", "releases.runtime.steading.dev", "forProvider", "Release is older than function-steading and would lose spec.forProvider: bring package provider-runtime"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCrossplane()
			mend := c.age(tc.definition, tc.field)
			rsp := c.compose(t, running(t))
			says := condition(rsp)
			if !strings.HasPrefix(says, "CONDITION_FALSE DefinitionsOutdated ") && !strings.HasPrefix(says, "FALSE DefinitionsOutdated ") || !strings.Contains(says, tc.says) {
				t.Errorf("%s condition %q, want %q", tc.reason, says, tc.says)
			}
			want := &fnv1.State{
				Composite: &fnv1.Resource{Ready: fnv1.Ready_READY_FALSE, Resource: resource.MustStructJSON(`{"apiVersion": "steading.dev/v1alpha1", "kind": "XEnvironment", "status": {"phase": "Running", "namespace": "acme-dev"}}`)},
				Resources: map[string]*fnv1.Resource{"placement": {Ready: fnv1.Ready_READY_FALSE, Resource: resource.MustStructJSON(`{
				  "apiVersion": "runtime.steading.dev/v1alpha1", "kind": "Placement",
				  "metadata": {"namespace": "steading-system", "name": "acme-dev", "finalizers": ["finalizer.managedresource.crossplane.io"], "labels": {"steading.dev/tenant": "acme"}},
				  "spec": {"forProvider": {"claim": {"namespace": "tenant-acme", "name": "dev"}}}}`)}},
			}
			if diff := cmp.Diff(want, rsp.GetDesired(), protocmp.Transform()); diff != "" {
				t.Errorf("%s -want, +have:\n%s", tc.reason, diff)
			}
			if ttl := rsp.GetMeta().GetTtl().AsDuration(); ttl != 30*time.Second || len(rsp.GetResults()) != 1 || c.watched[tc.definition] == nil {
				t.Errorf("TTL %s, results %v, watched %v", ttl, rsp.GetResults(), slices.Collect(maps.Keys(c.watched)))
			}

			marked := `{"type": "DefinitionsCurrent", "status": "False", "reason": "DefinitionsOutdated", "message": "` + message(rsp) + `"}`
			rsp = c.compose(t, running(t, marked))
			if c.calls != 1 || len(rsp.GetResults()) != 0 || condition(rsp) != says {
				t.Errorf("it is said again, or otherwise, or with calls that need not be: %d calls, %v, %q", c.calls, rsp.GetResults(), condition(rsp))
			}
			mend()
			rsp = c.compose(t, running(t, marked))
			if have := condition(rsp); !strings.HasSuffix(have, "TRUE Current") || c.calls != 1 || proto.Equal(rsp.GetDesired(), want) {
				t.Errorf("it does not go on at once: %q after %d calls", have, c.calls)
			}
			unknown := `{"type": "DefinitionsCurrent", "status": "Unknown", "reason": "FatalError"}`
			if have := condition(c.compose(t, running(t, unknown))); !strings.HasSuffix(have, "TRUE Current") {
				t.Errorf("after a call that failed it is said to be %q", have)
			}
			if c.compose(t, running(t)); c.calls != 1 || len(c.watched) != 0 {
				t.Errorf("what is current is asked for all the same, in %d calls: %d", c.calls, len(c.watched))
			}
		})
	}
}

func message(rsp *fnv1.RunFunctionResponse) string {
	for _, c := range rsp.GetConditions() {
		if c.GetType() == string(steading.ConditionDefinitionsCurrent) {
			return c.GetMessage()
		}
	}
	return ""
}

// TestHeldIsReadyForWhatIsThere already, whatever Crossplane's condition says: a spec that has changed since was never composed.
func TestHeldIsReadyForWhatIsThere(t *testing.T) {
	c := newCrossplane()
	record := func(version string) *fnv1.RunFunctionRequest {
		req := request(strings.Replace(xenvironment, `"runtime", "version": "1.4.2"`, `"remote-agent", "version": "`+version+`"`, 1))
		req.GetObserved().GetComposite().GetResource().Fields["status"] = structpb.NewStructValue(resource.MustStructJSON(`{"conditions": [{"type": "Ready", "status": "True"}]}`))
		return req
	}
	placement := c.compose(t, record("1")).GetDesired().GetResources()["placement"]
	placement.Resource.Fields["status"] = structpb.NewStructValue(resource.MustStructJSON(
		`{"atProvider": {"grant": {"version": "1"}}, "conditions": [{"type": "Ready", "status": "True"}]}`))
	c.age("environments.steading.dev", "components")
	for version, want := range map[string]fnv1.Ready{"1": fnv1.Ready_READY_TRUE, "2": fnv1.Ready_READY_FALSE} {
		req := record(version)
		req.Observed.Resources = map[string]*fnv1.Resource{"placement": placement}
		rsp := c.compose(t, req)
		if have := rsp.GetDesired().GetComposite().GetReady(); have != want || !strings.Contains(condition(rsp), "DefinitionsOutdated") {
			t.Errorf("version %s: %s, want %s; condition %q", version, have, want, condition(rsp))
		}
	}
}

func TestDefinitions(t *testing.T) {
	cases := map[string]struct {
		reason string
		set    func(*crossplane)
		xr     string
		want   string
	}{
		"Current": {"All is well.", func(*crossplane) {}, xenvironment, ""},
		"Absent": {"One that is not there yet is waited for.", func(c *crossplane) {
			delete(c.defined, "edges.runtime.steading.dev")
		}, xenvironment, "DefinitionsNotReady"},
		"Rendering":     {"There is no API server whose definitions could be shown.", func(c *crossplane) { clear(c.defined) }, xenvironment, ""},
		"OthersWritten": {"What is not written for this composite does not hold it.", func(c *crossplane) { c.age("homes.runtime.steading.dev", "forProvider") }, xenvironment, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCrossplane()
			tc.set(c)
			rsp := c.compose(t, request(tc.xr))
			if have := condition(rsp); (tc.want == "") != (have == "") || !strings.Contains(have, tc.want) {
				t.Errorf("%s have %q, want %q", tc.reason, have, tc.want)
			}
		})
	}
}

// TestReplicasOfDifferentMemoryAgree on what they ask for: Crossplane, which calls them in turns, gives up on a composite for which
// they do not.
func TestReplicasOfDifferentMemoryAgree(t *testing.T) {
	for _, first := range []int{0, 1} {
		c := newCrossplane()
		c.compose(t, request(xenvironment))
		knows := c.functions[0]
		c.replicas(1)
		c.functions, c.next = append(c.functions, knows), first
		c.watched = nil
		for range 4 {
			if rsp := c.compose(t, request(xenvironment)); rsp.GetDesired().GetResources()["placement"] == nil {
				t.Errorf("replica %d first: it is not composed", first)
			}
		}
	}
}

// TestAnotherReplicaLooksAgain when a composite says that its definitions are not current.
func TestAnotherReplicaLooksAgain(t *testing.T) {
	c := newCrossplane()
	for range 2 {
		c.compose(t, running(t)) // It finds all current, and asks no more.
	}
	c.age("environments.steading.dev", "components")
	c.clock.Step(time.Minute)
	if have := condition(c.compose(t, running(t))); have != "" {
		t.Errorf("it looks again before five minutes are over: %q", have)
	}
	if have := condition(c.compose(t, running(t, `{"type": "DefinitionsCurrent", "status": "False", "reason": "DefinitionsOutdated", "message": "m"}`))); !strings.Contains(have, "spec.components") {
		t.Errorf("it goes by what it saw a minute ago: %q", have)
	}
}

// TestWhatHoldsTheProviderIsSaidOnTheClaim, which is composed all the same.
func TestWhatHoldsTheProviderIsSaidOnTheClaim(t *testing.T) {
	c := newCrossplane()
	req := running(t)
	req.Observed.Resources["placement"].Resource.Fields["status"] = structpb.NewStructValue(resource.MustStructJSON(
		`{"conditions": [{"type": "DefinitionsCurrent", "status": "False", "reason": "DefinitionsOutdated", "message": "the provider's"}]}`))
	rsp := c.compose(t, req)
	if have := condition(rsp); !strings.Contains(have, "FALSE DefinitionsOutdated the provider's") {
		t.Errorf("condition %q", have)
	}
	if p := rsp.GetDesired().GetResources()["placement"].GetResource().AsMap()["spec"].(map[string]any)["forProvider"].(map[string]any); p["request"] == nil { //nolint:forcetypeassert // A test.
		t.Errorf("it is not composed: %v", p)
	}
}

// TestCrossplaneThatShowsNothing is an older one. Nothing is asked of it.
func TestCrossplaneThatShowsNothing(t *testing.T) {
	rsp, err := function().RunFunction(t.Context(), request(xenvironment))
	if err != nil || rsp.GetRequirements() != nil || rsp.GetDesired().GetResources()["placement"] == nil {
		t.Errorf("error %v, requirements %v", err, rsp.GetRequirements())
	}
}
