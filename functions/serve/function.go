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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steading-dev/steading/functions/compose"
)

// Function is the composition function: one composer a kind of composite.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	composers map[schema.GroupVersionKind]compose.Composer
	metrics   *Metrics
}

// NewFunction returns a Function with the given composers.
func NewFunction(composers map[schema.GroupVersionKind]compose.Composer, m *Metrics) *Function {
	return &Function{composers: composers, metrics: m}
}

// RunFunction composes one composite. What the composer cannot do is a fatal result, which leaves everything as it was.
func (f *Function) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	start := time.Now()
	xr := &unstructured.Unstructured{Object: fromStruct(req.GetObserved().GetComposite().GetResource())}
	rsp := response.To(req, compose.TTLNotReady)
	composer, ok := f.composers[xr.GroupVersionKind()]
	if !ok {
		response.Fatal(rsp, fmt.Errorf("function-steading does not compose %s; it composes %s", xr.GroupVersionKind(), f.kinds()))
		f.metrics.observe("unknown", "fatal", time.Since(start))
		return rsp, nil
	}
	outcome := f.compose(composer, xr, req, rsp)
	f.metrics.observe(xr.GetKind(), outcome, time.Since(start))
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	return rsp, nil
}

// compose runs the composer and writes its output into rsp. It returns ready, progressing or fatal.
func (f *Function) compose(composer compose.Composer, xr *unstructured.Unstructured, req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) string {
	out, err := composer.Compose(compose.Input{Composite: xr, Children: observedChildren(req)})
	if err == nil {
		err = encode(xr, out, rsp)
	}
	if err != nil {
		response.Fatal(rsp, err)
		return "fatal"
	}
	if out.Ready {
		return "ready"
	}
	return "progressing"
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
