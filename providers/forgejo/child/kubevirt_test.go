package child

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/test/fakes/kubevirt"
)

// TestMachinesAreKubeVirts: what is made of templates is valid by KubeVirt's own definition, and has no field that it does not
// know but those that the template has.
func TestMachinesAreKubeVirts(t *testing.T) {
	crds, err := kubevirt.Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	crd := &extv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crds[0].Object, crd); err != nil {
		t.Fatal(err)
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, props, nil); err != nil {
		t.Fatal(err)
	}
	schema, err := structuralschema.NewStructural(props)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatal(err)
	}
	for file, unknown := range map[string][]string{"vm.yaml": nil, "vm-targeted.yaml": nil, "vm-full.yaml": {"spec.template.spec.aFieldOfTomorrow"}} {
		raw, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		var machine map[string]any
		document, _, _ := bytes.Cut(raw, []byte("\n---\n"))
		if err := yaml.Unmarshal(document, &machine); err != nil {
			t.Fatal(err)
		}
		if errs := validation.ValidateCustomResource(nil, machine, validator); len(errs) > 0 {
			t.Errorf("%s: %v", file, errs.ToAggregate())
		}
		pruned := pruning.PruneWithOptions(machine, schema, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
		slices.Sort(pruned)
		if diff := cmp.Diff(unknown, pruned); diff != "" {
			t.Errorf("%s: fields that KubeVirt does not know: -want, +got:\n%s", file, diff)
		}
	}
}
