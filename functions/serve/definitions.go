package serve

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	sdk "github.com/crossplane/function-sdk-go/request"
	"google.golang.org/protobuf/types/known/structpb"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/steading-dev/steading/apis/definitions"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// software is what definitions are compared for.
const software = "function-steading"

// How long a verdict on definitions holds: five minutes, or thirty seconds while something is wrong.
const (
	verdictHolds      = 5 * time.Minute
	verdictWrongHolds = 30 * time.Second
)

// contextAsked is the key in the context of a call that says that definitions were asked for by the call before.
const contextAsked = "steading.dev/definitions-asked"

// written are the kinds that are written for a composite, by its kind: itself and its claim, and what is composed.
var written = map[schema.GroupVersionKind][]definitions.Kind{
	steading.GroupVersion.WithKind(steading.XTenantKind): append(
		definitions.Of(steading.GroupVersion, steading.XTenantKind, steading.TenantKind),
		definitions.Of(runtimev1.GroupVersion, runtimev1.HomeKind)...),
	steading.GroupVersion.WithKind(steading.XContextKind): append(
		definitions.Of(steading.GroupVersion, steading.XContextKind, steading.ContextKind),
		definitions.Of(runtimev1.GroupVersion, runtimev1.ClusterKind)...),
	steading.GroupVersion.WithKind(steading.XEnvironmentKind): append(
		definitions.Of(steading.GroupVersion, steading.XEnvironmentKind, steading.EnvironmentKind),
		definitions.Of(runtimev1.GroupVersion, runtimev1.PlacementKind, runtimev1.BoundaryKind, runtimev1.ReleaseKind, runtimev1.EdgeKind)...),
}

// served knows whether what an API server serves is what this build writes. A function does not talk to one: it asks Crossplane
// for the CustomResourceDefinitions, in the answer to a call, and is called again with them. Crossplane watches what the answer to
// a composite asks for, so that what is held is composed again as soon as a definition changes.
//
// Crossplane would show schemas too, for less. But it caches those, and when one is looked at in the second before the API server
// publishes a change, it goes on to show the old one for up to an hour.
type served struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	verdicts map[schema.GroupVersionKind]dated
}

// A dated verdict.
type dated struct {
	definitions.Verdict
	at time.Time
}

func newServed(c clock.PassiveClock) *served {
	return &served{clock: c, verdicts: map[schema.GroupVersionKind]dated{}}
}

// A view is what Crossplane shows, and should show, of definitions.
type view struct {
	definitions.Verdict
	// asks is what Crossplane is to show.
	asks *fnv1.Requirements
	// first is whether there is no verdict before it has.
	first bool
}

// view of the definitions of what is written for a composite of a kind. Marked is whether the composite says that they are not
// current, as another replica may have found: this one then looks again soon.
func (s *served) view(kind schema.GroupVersionKind, req *fnv1.RunFunctionRequest, marked bool) view {
	kinds := written[kind]
	if len(kinds) == 0 || !slices.Contains(req.GetMeta().GetCapabilities(), fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES) {
		return view{} // Nobody can tell.
	}
	found, shown := shownIn(req, kinds)
	_, asked := sdk.GetContextKey(req, contextAsked)
	switch {
	case shown:
		v := judge(found)
		s.keep(kind, v)
		if v.Holds() || asked {
			// To ask for the same again says that nothing more is needed. Another replica may have asked: what this one
			// remembers must not make it answer otherwise.
			return view{Verdict: v, asks: ask(kinds)}
		}
		// Crossplane shows what the last answer to this composite asked for, and need not any more.
		return view{}
	case s.known(kind, marked):
		return view{}
	default:
		return view{asks: ask(kinds), first: true}
	}
}

// judge what was found. Without the definition of the composite, which exists, it was not found on an API server: somebody
// renders.
func judge(found []definitions.Finding) definitions.Verdict {
	if found[0].Absent {
		return definitions.Verdict{}
	}
	return definitions.Judge(software, found...)
}

// known is whether all was well a moment ago.
func (s *served) known(kind schema.GroupVersionKind, marked bool) bool {
	holds := verdictHolds
	if marked {
		holds = verdictWrongHolds
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.verdicts[kind]
	return ok && !v.Holds() && s.clock.Since(v.at) < holds
}

func (s *served) keep(kind schema.GroupVersionKind, v definitions.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verdicts[kind] = dated{v, s.clock.Now()}
}

// ask for the definitions of kinds.
func ask(kinds []definitions.Kind) *fnv1.Requirements {
	r := &fnv1.Requirements{Resources: make(map[string]*fnv1.ResourceSelector, len(kinds))}
	for _, k := range kinds {
		r.Resources[k.Definition] = &fnv1.ResourceSelector{
			ApiVersion: extv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition",
			Match: &fnv1.ResourceSelector_MatchName{MatchName: k.Definition},
		}
	}
	return r
}

// shownIn a request is what is found of kinds, if it has their definitions.
func shownIn(req *fnv1.RunFunctionRequest, kinds []definitions.Kind) ([]definitions.Finding, bool) {
	var found []definitions.Finding
	for _, k := range kinds {
		shown, ok := req.GetRequiredResources()[k.Definition]
		if !ok {
			return nil, false
		}
		f := k.Find(nil)
		if items := shown.GetItems(); len(items) > 0 {
			crd := &extv1.CustomResourceDefinition{}
			if decode(items[0].GetResource(), crd) == nil {
				f = k.Find(crd)
			}
		}
		found = append(found, f)
	}
	return found, true
}

// decode what Crossplane shows.
func decode(shown *structpb.Struct, to any) error {
	raw, err := shown.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}
