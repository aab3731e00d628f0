package security

import (
	"os"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/registry"

	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
)

// harmless is what every chart of these tests makes.
const harmless = `apiVersion: v1
kind: ConfigMap
metadata: {name: harmless}
`

// pushChart publishes a chart of the harmless template and another one, in the platform's registry.
func pushChart(t *testing.T, name, template string, crds ...*chart.File) runtimev1.ChartSource {
	t.Helper()
	return pushAt(t, "hostile/"+name, &chart.Chart{
		Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, Version: "1.0.0"},
		Templates: []*chart.File{
			{Name: "templates/harmless.yaml", Data: []byte(harmless)},
			{Name: "templates/other.yaml", Data: []byte(template)},
		},
		Files: crds,
	})
}

// pushComponent publishes a chart of one template where the operator allows components to come from.
func pushComponent(t *testing.T, name, template string, crds ...*chart.File) {
	t.Helper()
	pushAt(t, "steading-dev/components/"+name, &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, Version: "1.0.0"},
		Templates: []*chart.File{{Name: "templates/all.yaml", Data: []byte(template)}},
		Files:     crds,
	})
}

// pushAt publishes a chart in the platform's registry.
func pushAt(t *testing.T, path string, c *chart.Chart) runtimev1.ChartSource {
	t.Helper()
	file, err := chartutil.Save(c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tgz, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.NewClient(registry.ClientOptPlainHTTP())
	if err != nil {
		t.Fatal(err)
	}
	repository := suite.Registry.Host() + "/" + path
	if _, err := r.Push(tgz, repository+":1.0.0"); err != nil {
		t.Fatal(err)
	}
	return runtimev1.ChartSource{Repository: repository, Version: "1.0.0"}
}

// useChart makes environments that are admitted from now on deploy a chart, until the test is over.
func useChart(t *testing.T, source runtimev1.ChartSource) {
	t.Helper()
	suite.Configure(t, func(s *runtimev1.ProviderConfigSpec) { s.RuntimeChart = source })
}
