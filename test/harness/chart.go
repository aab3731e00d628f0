package harness

import (
	"os"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/registry"
)

// PushChart of one template to a repository of a registry that is spoken to by plain HTTP.
func PushChart(t *testing.T, repository, name, version, template string) {
	t.Helper()
	path, err := chartutil.Save(&chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, Version: version},
		Templates: []*chart.File{{Name: "templates/all.yaml", Data: []byte(template)}},
	}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tgz, err := os.ReadFile(path) //nolint:gosec // G304: what was just written.
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.NewClient(registry.ClientOptPlainHTTP())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Push(tgz, repository+":"+version); err != nil {
		t.Fatal(err)
	}
}
