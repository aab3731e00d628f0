package kubevirt

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDefinitionsAreKubeVirts: they refuse what KubeVirt does not know, have its columns, and only machines have a status of
// their own to write.
func TestDefinitionsAreKubeVirts(t *testing.T) {
	t.Parallel()
	all, err := Definitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name      string
		status    bool
		structure []string
	}{
		{"virtualmachines.kubevirt.io", true, []string{"spec", "properties", "template", "properties", "spec", "properties", "domain", "properties", "devices"}},
		{"virtualmachineinstances.kubevirt.io", false, []string{"spec", "properties", "domain", "properties", "devices"}},
	} {
		versions, _, _ := unstructured.NestedSlice(all[i].Object, "spec", "versions")
		v := versions[0].(map[string]any) //nolint:forcetypeassert // A version of a definition.
		_, status, _ := unstructured.NestedMap(v, "subresources", "status")
		columns, _, _ := unstructured.NestedSlice(v, "additionalPrinterColumns")
		path := append([]string{"schema", "openAPIV3Schema", "properties"}, want.structure...)
		_, structured, err := unstructured.NestedMap(v, append(path, "properties", "disks")...)
		if all[i].GetName() != want.name || v["name"] != "v1" || status != want.status || len(columns) < 3 || !structured || err != nil {
			t.Errorf("%s %v: status %t, %d columns, disks %t, %v", all[i].GetName(), v["name"], status, len(columns), structured, err)
		}
	}
}
