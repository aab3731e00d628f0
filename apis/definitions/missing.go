package definitions

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Missing lists what this build knows of the kind and the served schema does not take: fields, values of enums, amounts that it
// allows and the served one does not. A part that is missing is named once, as a path: spec.a, spec.list[].b, spec.map{}.c. What
// the served schema has beyond is no matter.
//
// Patterns, rules and defaults are left aside: of two of them nobody can tell which is the older, and the API server refuses
// aloud what does not keep to them.
func (k Kind) Missing(served extv1.JSONSchemaProps) []string {
	c := comparison{}
	if takesAnything(served) {
		return nil
	}
	for _, part := range []string{"spec", "status"} {
		if built, ok := k.Schema.Properties[part]; ok {
			c.property("", part, built, served)
		}
	}
	return c.missing
}

type comparison struct{ missing []string }

func (c *comparison) lacks(format string, args ...any) {
	c.missing = append(c.missing, fmt.Sprintf(format, args...))
}

// property of what is at a path.
func (c *comparison) property(parent, name string, built, of extv1.JSONSchemaProps) {
	path := strings.TrimPrefix(parent+"."+name, ".")
	served, ok := of.Properties[name]
	if !ok {
		c.lacks("%s", path)
		return
	}
	c.schema(path, built, served)
}

// schema of what is at a path.
func (c *comparison) schema(path string, built, served extv1.JSONSchemaProps) {
	if takesAnything(served) {
		return
	}
	if takesAnything(built) {
		c.lacks("%s.*", path)
		return
	}
	if built.Type != "" && served.Type != "" && built.Type != served.Type {
		c.lacks("%s as %s", path, built.Type)
		return
	}
	c.values(path, built, served)
	c.limits(path, built, served)
	for _, name := range slices.Sorted(maps.Keys(built.Properties)) {
		c.property(path, name, built.Properties[name], served)
	}
	if b, s := itemsOf(built), itemsOf(served); b != nil && s != nil {
		c.schema(path+"[]", *b, *s)
	}
	c.entries(path, built, served)
}

// entries of a map.
func (c *comparison) entries(path string, built, served extv1.JSONSchemaProps) {
	b, s := built.AdditionalProperties, served.AdditionalProperties
	switch {
	case b == nil:
	case s == nil || b.Schema != nil && s.Schema == nil && !s.Allows:
		c.lacks("%s{}", path)
	case b.Schema != nil && s.Schema != nil:
		c.schema(path+"{}", *b.Schema, *s.Schema)
	}
}

// values of an enum.
func (c *comparison) values(path string, built, served extv1.JSONSchemaProps) {
	if len(served.Enum) == 0 {
		return
	}
	for _, v := range built.Enum {
		if !slices.ContainsFunc(served.Enum, func(s extv1.JSON) bool { return bytes.Equal(bytes.TrimSpace(s.Raw), bytes.TrimSpace(v.Raw)) }) {
			c.lacks("%s=%s", path, v.Raw)
		}
	}
}

// limits that are narrower than those this build has. One that it does not have at all may be newer than it.
func (c *comparison) limits(path string, built, served extv1.JSONSchemaProps) {
	most(c, path, built.Maximum, served.Maximum)
	most(c, path+" (length)", built.MaxLength, served.MaxLength)
	most(c, path+" (items)", built.MaxItems, served.MaxItems)
	most(c, path+" (entries)", built.MaxProperties, served.MaxProperties)
	least(c, path, built.Minimum, served.Minimum)
	least(c, path+" (length)", built.MinLength, served.MinLength)
	least(c, path+" (items)", built.MinItems, served.MinItems)
	least(c, path+" (entries)", built.MinProperties, served.MinProperties)
}

func most[N int64 | float64](c *comparison, path string, built, served *N) {
	if built != nil && served != nil && *served < *built {
		c.lacks("%s above %v", path, *served)
	}
}

func least[N int64 | float64](c *comparison, path string, built, served *N) {
	if built != nil && served != nil && *served > *built {
		c.lacks("%s below %v", path, *served)
	}
}

// takesAnything reports whether every field is kept.
func takesAnything(s extv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}

func itemsOf(s extv1.JSONSchemaProps) *extv1.JSONSchemaProps {
	if s.Items == nil {
		return nil
	}
	return s.Items.Schema
}
