package render

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Objects in a manifest, with those in lists one by one. It is for manifests that are our own: see the package.
func Objects(manifest []byte) ([]*unstructured.Unstructured, error) {
	var objs []*unstructured.Unstructured
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return objs, nil
		}
		if err != nil {
			return nil, err
		}
		raw, err := yaml.YAMLToJSON(doc)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
			continue
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(raw); err != nil {
			return nil, err
		}
		if objs, err = flattened(objs, obj); err != nil {
			return nil, err
		}
	}
}

// flattened appends an object, or what is in it if it is a list.
func flattened(to []*unstructured.Unstructured, obj *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !obj.IsList() {
		return append(to, obj), nil
	}
	err := obj.EachListItem(func(item runtime.Object) error {
		u, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("%s %q lists what are not objects", obj.GetKind(), obj.GetName())
		}
		var err error
		to, err = flattened(to, u)
		return err
	})
	return to, err
}

// A scale weighs what objects take as YAML, in which depth costs with each line.
type scale struct{ left int }

// tooDeep is the weight of what is too deep.
const tooDeep = -1

// weigh reports whether there is room for a value, or for how deep it is.
func (s *scale) weigh(v any, depth int) bool {
	if depth > maxDepth {
		s.left = tooDeep
		return false
	}
	s.left -= 2*depth + 8
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if s.left -= len(k); !s.weigh(inner, depth+1) {
				return false
			}
		}
	case []any:
		for _, inner := range v {
			if !s.weigh(inner, depth+1) {
				return false
			}
		}
	case string:
		s.left -= len(v) + 2*depth*strings.Count(v, "\n")
	}
	return s.left >= 0
}
