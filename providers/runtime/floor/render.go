package floor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Render a chart the way helm template does, without a cluster. The objects are in the order of their files.
func Render(c *chart.Chart, release, namespace string, values map[string]any) ([]*unstructured.Unstructured, error) {
	opts := chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	v, err := chartutil.ToRenderValues(c, values, opts, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("cannot render chart %s: %w", c.Name(), err)
	}
	manifests, err := engine.Render(c, v)
	if err != nil {
		return nil, fmt.Errorf("cannot render chart %s: %w", c.Name(), err)
	}
	return objectsIn(c, manifests)
}

// objectsIn what a chart rendered, by the names of its files.
func objectsIn(c *chart.Chart, manifests map[string]string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		if base := path.Base(name); strings.HasPrefix(base, "_") || base == chartutil.NotesName {
			continue
		}
		objects, err := decode(manifests[name])
		if err != nil {
			return nil, fmt.Errorf("cannot read what chart %s rendered as %s: %w", c.Name(), name, err)
		}
		out = append(out, objects...)
	}
	return out, nil
}

func decode(manifest string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(manifest), 4096)
	for {
		u := &unstructured.Unstructured{}
		switch err := d.Decode(&u.Object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case len(u.Object) > 0:
			out = append(out, u)
		}
	}
}
