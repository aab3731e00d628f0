package charts

import (
	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steading-dev/steading/providers/runtime/floor"
)

// Render a chart the way helm template does, without a cluster. The objects are in the order of their files.
func Render(c *chart.Chart, release, namespace string, values map[string]any) ([]*unstructured.Unstructured, error) {
	return floor.Render(c, release, namespace, values)
}
