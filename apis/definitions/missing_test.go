package definitions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// spec is a schema with this spec, in YAML.
func spec(t *testing.T, y string) extv1.JSONSchemaProps {
	t.Helper()
	s := extv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(y), &s); err != nil {
		t.Fatal(err)
	}
	return extv1.JSONSchemaProps{Properties: map[string]extv1.JSONSchemaProps{"spec": s}}
}

func TestMissing(t *testing.T) {
	cases := map[string]struct {
		reason        string
		built, served string
		want          []string
	}{
		"Same":          {"Nothing is lost.", `{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`, nil},
		"Newer":         {"What is served beyond is no matter.", `{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string}, b: {type: string}}}`, nil},
		"Field":         {"A field is dropped.", `{type: object, properties: {a: {type: string}, b: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`, []string{"spec.b"}},
		"Sorted":        {"They are named in order.", `{properties: {c: {}, a: {}, b: {}}}`, `{properties: {}}`, []string{"spec.a", "spec.b", "spec.c"}},
		"Subtree":       {"All below is named once.", `{properties: {a: {properties: {b: {}, c: {}}}}}`, `{properties: {}}`, []string{"spec.a"}},
		"InList":        {"Within a list.", `{properties: {a: {type: array, items: {properties: {b: {}}}}}}`, `{properties: {a: {type: array, items: {properties: {}}}}}`, []string{"spec.a[].b"}},
		"InMap":         {"Within a map.", `{properties: {a: {additionalProperties: {properties: {b: {}}}}}}`, `{properties: {a: {additionalProperties: {properties: {}}}}}`, []string{"spec.a{}.b"}},
		"Map":           {"A map that has become an object keeps no entries.", `{properties: {a: {additionalProperties: {type: string}}}}`, `{properties: {a: {properties: {x: {}}}}}`, []string{"spec.a{}"}},
		"AnyServed":     {"What keeps everything keeps this.", `{properties: {a: {properties: {b: {}}}}}`, `{properties: {a: {x-kubernetes-preserve-unknown-fields: true}}}`, nil},
		"AnyBuilt":      {"What should keep everything does not.", `{properties: {a: {x-kubernetes-preserve-unknown-fields: true}}}`, `{properties: {a: {properties: {b: {}}}}}`, []string{"spec.a.*"}},
		"Value":         {"A value of an enum is refused.", `{properties: {a: {enum: [p, q]}}}`, `{properties: {a: {enum: [p]}}}`, []string{`spec.a="q"`}},
		"NewerValue":    {"One more is taken.", `{properties: {a: {enum: [p]}}}`, `{properties: {a: {enum: [q, p]}}}`, nil},
		"FreeValue":     {"Any is taken.", `{properties: {a: {enum: [x]}}}`, `{properties: {a: {type: string}}}`, nil},
		"Type":          {"It is another type.", `{properties: {a: {type: string}}}`, `{properties: {a: {type: integer}}}`, []string{"spec.a as string"}},
		"Most":          {"Less is taken than this build knows of.", `{properties: {a: {maximum: 100, maxLength: 9}}}`, `{properties: {a: {maximum: 50, maxLength: 5}}}`, []string{"spec.a above 50", "spec.a (length) above 5"}},
		"Least":         {"A smaller amount is refused.", `{properties: {a: {minimum: 0, minItems: 0}}}`, `{properties: {a: {minimum: 1, minItems: 2}}}`, []string{"spec.a below 1", "spec.a (items) below 2"}},
		"MoreIsTaken":   {"Wider limits lose nothing.", `{properties: {a: {maximum: 50, minimum: 1}}}`, `{properties: {a: {maximum: 100, minimum: 0}}}`, nil},
		"NewLimit":      {"A limit that this build does not have may be newer than it: a rollback must not be held.", `{properties: {a: {type: integer}}}`, `{properties: {a: {type: integer, minimum: 0}}}`, nil},
		"OtherPatterns": {"Which pattern is older cannot be told.", `{properties: {a: {pattern: a}}}`, `{properties: {a: {pattern: b}}}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := Kind{Schema: spec(t, tc.built)}
			if diff := cmp.Diff(tc.want, k.Missing(spec(t, tc.served))); diff != "" {
				t.Errorf("%s\n-want, +have:\n%s", tc.reason, diff)
			}
		})
	}
	if have := (Kind{Schema: spec(t, `{type: object}`)}).Missing(extv1.JSONSchemaProps{}); !cmp.Equal(have, []string{"spec"}) {
		t.Errorf("of a kind without a schema all is missing: have %v", have)
	}
}
