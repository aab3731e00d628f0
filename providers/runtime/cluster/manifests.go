package cluster

import (
	"bytes"
	_ "embed" // The guard's manifests.
	"io"
	"slices"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// guardManifests are those of cluster/install that clusters of contexts need too: the roles of environments' deployers and
// owners, and the policies that keep what Steading makes there.
//
//go:embed zz_generated_guard.yaml
var guardManifests []byte

// manifests of a guard, in the order in which they are to be made. Who gets them changes copies only.
func manifests() ([]*unstructured.Unstructured, error) {
	all, err := parsed()
	return slices.Clone(all), err
}

var parsed = sync.OnceValues(func() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(guardManifests), 4096); ; {
		u := &unstructured.Unstructured{}
		err := d.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, errors.Wrap(err, "cannot read the guard's manifests")
		}
		if len(u.Object) > 0 {
			all = append(all, u)
		}
	}
})
