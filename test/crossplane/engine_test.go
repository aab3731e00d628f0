package crossplane

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/functions/serve"
)

// Fields of the messages that `crossplane internal render` takes and gives, by its module's proto/render/v1alpha1/render.proto. Its
// types are in Crossplane's main module, which is not for import.
const (
	fieldComposite = 2 // Of RenderRequest and RenderResponse.

	fieldXR          = 1 // Of CompositeInput.
	fieldComposition = 2
	fieldFunctions   = 3
	fieldObserved    = 4
	fieldXRD         = 8

	fieldFunctionName    = 1 // Of FunctionInput.
	fieldFunctionAddress = 2

	fieldComposed = 2 // Of CompositeOutput.
	fieldDeleted  = 3
)

// TestEngineComposesWhatTheFunctionDesires: Crossplane's own reconciler, given an example of a claim and what it composed before,
// applies just what the function desires, and takes nothing away.
func TestEngineComposesWhatTheFunctionDesires(t *testing.T) {
	address := serving(t)
	eachClaim(t, func(t *testing.T, kind string, claim *unstructured.Unstructured) {
		t.Helper()
		xr := object(t, compositeOf(t, claim))
		var observed []*structpb.Struct
		for range 2 {
			composed, deleted := engine(t, kind, address, xr, observed)
			want := desired(t, xr, observed)
			if len(want) == 0 || len(deleted) > 0 {
				t.Fatalf("the function desires %d objects, and the engine deletes %v", len(want), deleted)
			}
			if diff := cmp.Diff(want, byName(composed)); diff != "" {
				t.Errorf("with %d observed: -desired by the function, +composed by the engine:\n%s", len(observed), diff)
			}
			observed = composed
		}
	})
}

// engine reconciles a composite once, and returns what it composes and deletes.
func engine(t *testing.T, kind, address string, xr *structpb.Struct, observed []*structpb.Struct) (composed, deleted []*structpb.Struct) {
	t.Helper()
	singular := strings.ToLower(kind) + ".yaml"
	function := text(nil, fieldFunctionName, "function-steading")
	function = text(function, fieldFunctionAddress, address)
	var in []byte
	in = message(t, in, fieldXR, xr)
	in = message(t, in, fieldComposition, file(t, "compositions", singular))
	in = protowire.AppendBytes(protowire.AppendTag(in, fieldFunctions, protowire.BytesType), function)
	for _, o := range observed {
		in = message(t, in, fieldObserved, o)
	}
	in = message(t, in, fieldXRD, file(t, "xrds", singular))

	cmd := exec.CommandContext(t.Context(), built(t).Path(local.Crossplane), "internal", "render")
	cmd.Stdin = bytes.NewReader(protowire.AppendBytes(protowire.AppendTag(nil, fieldComposite, protowire.BytesType), in))
	said := &bytes.Buffer{}
	cmd.Stderr = said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("crossplane internal render: %v\n%s", err, said)
	}
	each(t, out, func(field protowire.Number, composite []byte) {
		if field != fieldComposite {
			return
		}
		each(t, composite, func(field protowire.Number, raw []byte) {
			switch field {
			case fieldComposed:
				composed = append(composed, parsed(t, raw))
			case fieldDeleted:
				deleted = append(deleted, parsed(t, raw))
			default: // The composite, events, and what the function asked for.
			}
		})
	})
	return composed, deleted
}

// desired of the function, asked by itself, by the name of the resource.
func desired(t *testing.T, xr *structpb.Struct, observed []*structpb.Struct) map[string]any {
	t.Helper()
	req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}, Resources: map[string]*fnv1.Resource{}}}
	for _, o := range observed {
		u := &unstructured.Unstructured{Object: o.AsMap()}
		req.Observed.Resources[u.GetAnnotations()[compositionName]] = &fnv1.Resource{Resource: o}
	}
	f := serve.NewFunction(serve.Composers(), serve.NewMetrics(prometheus.NewRegistry()))
	rsp, err := f.RunFunction(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for name, r := range rsp.GetDesired().GetResources() {
		all[name] = r.GetResource().AsMap()
	}
	return all
}

// compositionName is the annotation by which Crossplane knows what a composed object is.
const compositionName = "crossplane.io/composition-resource-name"

// byName are composed objects by the name of the resource, without what Crossplane adds to all of them.
func byName(composed []*structpb.Struct) map[string]any {
	all := map[string]any{}
	for _, o := range composed {
		u := &unstructured.Unstructured{Object: o.AsMap()}
		name := u.GetAnnotations()[compositionName]
		u.SetAnnotations(withoutCrossplanes(u.GetAnnotations()))
		u.SetLabels(withoutCrossplanes(u.GetLabels()))
		u.SetOwnerReferences(nil)
		u.SetGenerateName("")
		all[name] = u.Object
	}
	return all
}

func withoutCrossplanes(m map[string]string) map[string]string {
	for k := range m {
		if strings.HasPrefix(k, "crossplane.io/") {
			delete(m, k)
		}
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

func message(t *testing.T, to []byte, field protowire.Number, m proto.Message) []byte {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), raw)
}

func text(to []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), s)
}

// each field of a message that is a message itself.
func each(t *testing.T, raw []byte, do func(protowire.Number, []byte)) {
	t.Helper()
	for len(raw) > 0 {
		field, kind, n := protowire.ConsumeTag(raw)
		if n < 0 || kind != protowire.BytesType {
			t.Fatalf("field %d of type %d: %v", field, kind, protowire.ParseError(n))
		}
		value, m := protowire.ConsumeBytes(raw[n:])
		if m < 0 {
			t.Fatal(protowire.ParseError(m))
		}
		do(field, value)
		raw = raw[n+m:]
	}
}

func parsed(t *testing.T, raw []byte) *structpb.Struct {
	t.Helper()
	s := &structpb.Struct{}
	if err := proto.Unmarshal(raw, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// file of the source tree with one object.
func file(t *testing.T, path ...string) *structpb.Struct {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(append([]string{top}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return object(t, string(raw))
}

func object(t *testing.T, y string) *structpb.Struct {
	t.Helper()
	o := map[string]any{}
	if err := yaml.Unmarshal([]byte(y), &o); err != nil {
		t.Fatal(err)
	}
	s, err := structpb.NewStruct(o)
	if err != nil {
		t.Fatal(fmt.Errorf("%w: %s", err, y))
	}
	return s
}
