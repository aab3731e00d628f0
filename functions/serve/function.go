package serve

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/steading-dev/steading/apis/definitions"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/functions/compose"
)

// Function is the composition function: one composer a kind of composite.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	composers map[schema.GroupVersionKind]compose.Composer
	metrics   *Metrics
	served    *served
}

// NewFunction returns a Function with the given composers.
func NewFunction(composers map[schema.GroupVersionKind]compose.Composer, m *Metrics) *Function {
	return &Function{composers: composers, metrics: m, served: newServed(clock.RealClock{})}
}

// RunFunction composes one composite. What the composer cannot do is a fatal result, which leaves everything as it was.
func (f *Function) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	start := time.Now()
	xr := &unstructured.Unstructured{Object: fromStruct(req.GetObserved().GetComposite().GetResource())}
	rsp := response.To(req, compose.TTLNotReady)
	composer, ok := f.composers[xr.GroupVersionKind()]
	if !ok {
		fatal(rsp, fmt.Errorf("function-steading does not compose %s; it composes %s", xr.GroupVersionKind(), f.kinds()))
		f.metrics.observe("unknown", "fatal", time.Since(start))
		return rsp, nil
	}
	in := compose.Input{Composite: xr, Children: observedChildren(req)}
	seen := f.served.view(xr.GroupVersionKind(), req, conditionOf(xr, steading.ConditionDefinitionsCurrent).Status == "False")
	rsp.Requirements = seen.asks
	if seen.first {
		response.SetContextKey(rsp, contextAsked, structpb.NewBoolValue(true))
		return rsp, ctxError(ctx)
	}
	outcome := f.compose(composer, in, seen.Verdict, rsp)
	f.metrics.observe(xr.GetKind(), outcome, time.Since(start))
	return rsp, ctxError(ctx)
}

// ctxError is why nobody waits for the answer any more.
func ctxError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	return nil
}

// compose runs the composer, or keeps all as it is while definitions hold it, and writes the output into rsp. It returns ready,
// progressing, held or fatal.
func (f *Function) compose(composer compose.Composer, in compose.Input, v definitions.Verdict, rsp *fnv1.RunFunctionResponse) string {
	if v.Holds() {
		composer = held(composer)
	}
	out, err := composer.Compose(in)
	if err == nil {
		say(in, v, &out)
		err = encode(in.Composite, out, rsp)
	}
	switch {
	case err != nil:
		fatal(rsp, err)
		return "fatal"
	case v.Holds():
		rsp.GetMeta().Ttl = durationpb.New(verdictWrongHolds)
		return "held"
	case out.Ready:
		return "ready"
	default:
		return "progressing"
	}
}

// fatal fails the composite and has its claim told why. Crossplane keeps what is fatal from claims, whose owners may not read
// composites.
func fatal(rsp *fnv1.RunFunctionResponse, err error) {
	response.Warning(rsp, err).TargetCompositeAndClaim()
	response.Fatal(rsp, err)
}

// kinds lists what f composes, for an error message.
func (f *Function) kinds() string {
	ks := make([]string, 0, len(f.composers))
	for gvk := range f.composers {
		ks = append(ks, gvk.Kind)
	}
	sort.Strings(ks)
	return strings.Join(ks, ", ")
}

// observedChildren decodes the composed resources that exist.
func observedChildren(req *fnv1.RunFunctionRequest) map[string]*unstructured.Unstructured {
	children := make(map[string]*unstructured.Unstructured, len(req.GetObserved().GetResources()))
	for name, r := range req.GetObserved().GetResources() {
		children[name] = &unstructured.Unstructured{Object: fromStruct(r.GetResource())}
	}
	return children
}

// errPanic is what a caller sees of a panic; the stack is in the log.
var errPanic = status.Error(codes.Internal, "the function panicked: see its log")
