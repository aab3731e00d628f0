package definitions

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// A Kind as this build knows it.
type Kind struct {
	schema.GroupVersionKind
	// Definition is the name of its CustomResourceDefinition.
	Definition string
	// XRD that Crossplane makes the definition of; empty for one that a package brings.
	XRD string
	// Schema of its spec and status.
	Schema extv1.JSONSchemaProps
}

// File is what a file beside this one holds: a CustomResourceDefinition, or both that Crossplane makes of an XRD.
type File struct {
	Group   string                `json:"group"`
	Version string                `json:"version"`
	XRD     string                `json:"xrd,omitempty"`
	Kinds   []Names               `json:"kinds"`
	Schema  extv1.JSONSchemaProps `json:"schema"`
}

// Names of a kind.
type Names struct {
	Kind   string `json:"kind"`
	Plural string `json:"plural"`
}

//go:embed *.yaml
var files embed.FS

// All kinds, by group and kind.
var All = sync.OnceValue(func() []Kind {
	all, err := read()
	if err != nil {
		panic(fmt.Sprintf("cannot read the definitions that this was built with: %v", err)) // A test reads them.
	}
	return all
})

func read() ([]Kind, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var all []Kind
	for _, e := range entries {
		raw, err := files.ReadFile(path.Base(e.Name()))
		if err != nil {
			return nil, err
		}
		f := File{}
		if err := yaml.UnmarshalStrict(raw, &f); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		for _, n := range f.Kinds {
			all = append(all, Kind{
				GroupVersionKind: schema.GroupVersionKind{Group: f.Group, Version: f.Version, Kind: n.Kind},
				Definition:       n.Plural + "." + f.Group, XRD: f.XRD, Schema: f.Schema,
			})
		}
	}
	slices.SortFunc(all, func(a, b Kind) int { return strings.Compare(a.GroupKind().String(), b.GroupKind().String()) })
	return all, nil
}

// Of a group, the kinds with these names, in this order. It panics when there is no such kind: who asks knows them when he is
// built.
func Of(gv schema.GroupVersion, kinds ...string) []Kind {
	all := All()
	found := make([]Kind, 0, len(kinds))
	for _, name := range kinds {
		i := slices.IndexFunc(all, func(k Kind) bool { return k.GroupVersionKind == gv.WithKind(name) })
		if i < 0 {
			panic(fmt.Sprintf("there is no definition of %s", gv.WithKind(name)))
		}
		found = append(found, all[i])
	}
	return found
}
