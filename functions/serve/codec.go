package serve

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steading-dev/steading/functions/compose"
)

// fromStruct turns a protobuf struct into an object with JSON's types as Kubernetes has them: whole numbers are int64.
func fromStruct(s *structpb.Struct) map[string]any {
	m := make(map[string]any, len(s.GetFields()))
	for k, v := range s.GetFields() {
		m[k] = fromValue(v)
	}
	return m
}

// maxWhole is the largest float64 below which every whole number is exact.
const maxWhole = 1 << 53

func fromValue(v *structpb.Value) any {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		return fromStruct(k.StructValue)
	case *structpb.Value_ListValue:
		l := make([]any, 0, len(k.ListValue.GetValues()))
		for _, e := range k.ListValue.GetValues() {
			l = append(l, fromValue(e))
		}
		return l
	case *structpb.Value_NumberValue:
		if n := k.NumberValue; n == math.Trunc(n) && math.Abs(n) < maxWhole {
			return int64(n)
		}
		return k.NumberValue
	case *structpb.Value_StringValue:
		return k.StringValue
	case *structpb.Value_BoolValue:
		return k.BoolValue
	default:
		return nil
	}
}

// encode writes a composer's output into a response.
func encode(xr *unstructured.Unstructured, out compose.Output, rsp *fnv1.RunFunctionResponse) error {
	rsp.GetMeta().Ttl = durationpb.New(ttl(xr, out))
	if err := encodeComposite(xr, out, rsp); err != nil {
		return err
	}
	if err := encodeChildren(out, rsp); err != nil {
		return err
	}
	for _, c := range out.Conditions {
		o := response.ConditionFalse(rsp, string(c.Type), string(c.Reason))
		if c.Status == "True" {
			rsp.GetConditions()[len(rsp.GetConditions())-1].Status = fnv1.Status_STATUS_CONDITION_TRUE
		}
		if c.Message != "" {
			o = o.WithMessage(c.Message)
		}
		o.TargetCompositeAndClaim()
	}
	for _, e := range out.Events {
		r := response.Normal(rsp, e.Message)
		if e.Warning {
			rsp.GetResults()[len(rsp.GetResults())-1].Severity = fnv1.Severity_SEVERITY_WARNING
		}
		r.WithReason(e.Reason).TargetCompositeAndClaim()
	}
	return nil
}

// ttl is how long until Crossplane calls again when nothing changes.
func ttl(xr *unstructured.Unstructured, out compose.Output) time.Duration {
	switch {
	case compose.Unresponsive(xr):
		return compose.TTLUnresponsive
	case out.Ready:
		return compose.TTLReady
	default:
		return compose.TTLNotReady
	}
}

// encodeComposite writes the status and readiness of the composite.
func encodeComposite(xr *unstructured.Unstructured, out compose.Output, rsp *fnv1.RunFunctionResponse) error {
	st, err := runtime.DefaultUnstructuredConverter.ToUnstructured(out.Status)
	if err != nil {
		return fmt.Errorf("cannot encode the status of %s %q: %w", xr.GetKind(), xr.GetName(), err)
	}
	s, err := structpb.NewStruct(map[string]any{"apiVersion": xr.GetAPIVersion(), "kind": xr.GetKind(), "status": st})
	if err != nil {
		return fmt.Errorf("cannot encode the status of %s %q: %w", xr.GetKind(), xr.GetName(), err)
	}
	if rsp.GetDesired() == nil {
		rsp.Desired = &fnv1.State{}
	}
	rsp.Desired.Composite = &fnv1.Resource{Resource: s, Ready: readiness(out.Ready)}
	return nil
}

// encodeChildren writes the desired composed resources, without the fields that are not ours to set.
func encodeChildren(out compose.Output, rsp *fnv1.RunFunctionResponse) error {
	if rsp.GetDesired().GetResources() == nil {
		rsp.Desired.Resources = make(map[string]*fnv1.Resource, len(out.Children))
	}
	for _, name := range slices.Sorted(maps.Keys(out.Children)) {
		child := out.Children[name]
		obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child.Object)
		if err != nil {
			return fmt.Errorf("cannot encode composed %q: %w", name, err)
		}
		obj = runtime.DeepCopyJSON(obj)
		delete(obj, "status")
		unstructured.RemoveNestedField(obj, "metadata", "creationTimestamp")
		s, err := structpb.NewStruct(obj)
		if err != nil {
			return fmt.Errorf("cannot encode composed %q: %w", name, err)
		}
		rsp.Desired.Resources[name] = &fnv1.Resource{Resource: s, Ready: readiness(child.Ready)}
	}
	return nil
}

func readiness(ready bool) fnv1.Ready {
	if ready {
		return fnv1.Ready_READY_TRUE
	}
	return fnv1.Ready_READY_FALSE
}
