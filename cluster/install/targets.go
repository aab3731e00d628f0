package install

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// LabelTarget is "true" on what is installed on the clusters of contexts too, by the provider.
const LabelTarget = "steading.dev/target"

//go:embed base/*.yaml
var base embed.FS

// Targets are the objects that clusters of contexts need: the roles of environments' deployers and owners, and the policies
// that keep what Steading makes there. They are in the order in which they are to be made. Command guard writes them to where
// the provider embeds them.
func Targets() ([]*unstructured.Unstructured, error) {
	entries, err := base.ReadDir("base")
	if err != nil {
		return nil, fmt.Errorf("cannot list the manifests: %w", err)
	}
	var targets []*unstructured.Unstructured
	for _, e := range entries {
		b, err := base.ReadFile("base/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("cannot read the manifests: %w", err)
		}
		for d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(b), 4096); ; {
			u := &unstructured.Unstructured{}
			err := d.Decode(&u.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("cannot read manifest %s: %w", e.Name(), err)
			}
			if u.GetLabels()[LabelTarget] == "true" {
				targets = append(targets, u)
			}
		}
	}
	return targets, nil
}
