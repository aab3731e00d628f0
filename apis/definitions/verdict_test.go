package definitions

import (
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

func TestJudge(t *testing.T) {
	home := Kind{GroupVersionKind: schema.GroupVersionKind{Group: "runtime.steading.dev", Version: "v1alpha1", Kind: "Home"}, Definition: "homes.runtime.steading.dev"}
	tenant := Kind{GroupVersionKind: schema.GroupVersionKind{Group: "steading.dev", Version: "v1alpha1", Kind: "Tenant"}, Definition: "tenants.steading.dev", XRD: "xtenants.steading.dev"}
	composite := tenant
	composite.Kind, composite.Definition = "XTenant", "xtenants.steading.dev"
	cases := map[string]struct {
		reason string
		found  []Finding
		want   Verdict
	}{
		"Current": {"Nothing is wrong.", []Finding{{Kind: home}, {Kind: tenant}}, Verdict{}},
		"Package": {
			"A kind of a package names the package.", []Finding{{Kind: home, Missing: []string{"spec.a"}}},
			Verdict{steading.ReasonDefinitionsOutdated, "the definition of Home is older than function-steading and would lose spec.a: bring package provider-runtime, or CustomResourceDefinition homes.runtime.steading.dev, to the version of function-steading"},
		},
		"ClaimAndComposite": {
			"What Crossplane made of one XRD is said once.", []Finding{{Kind: tenant, Missing: []string{"spec.a"}}, {Kind: composite, Missing: []string{"spec.a"}}},
			Verdict{steading.ReasonDefinitionsOutdated, "the definition of Tenant and XTenant is older than function-steading and would lose spec.a: bring package configuration-steading, or XRD xtenants.steading.dev, to the version of function-steading"},
		},
		"Many": {
			"A message stays short.", []Finding{{Kind: home, Missing: []string{"a", "b", "c", "d", "e", "f"}}},
			Verdict{steading.ReasonDefinitionsOutdated, "the definition of Home is older than function-steading and would lose a, b, c, d and 2 more: bring package provider-runtime, or CustomResourceDefinition homes.runtime.steading.dev, to the version of function-steading"},
		},
		"Absent": {
			"One that is not served is waited for.", []Finding{{Kind: home, Absent: true}},
			Verdict{steading.ReasonDefinitionsNotReady, "the API server does not serve Home: bring package provider-runtime, or CustomResourceDefinition homes.runtime.steading.dev, to the version of function-steading"},
		},
		"Worst": {
			"Only an old one loses anything, so that it comes first.", []Finding{{Kind: home, Absent: true}, {Kind: tenant, Missing: []string{"spec.a"}}},
			Verdict{steading.ReasonDefinitionsOutdated, "the definition of Tenant is older than function-steading and would lose spec.a: bring package configuration-steading, or XRD xtenants.steading.dev, to the version of function-steading"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Judge("function-steading", tc.found...)); diff != "" {
				t.Errorf("%s\n-want, +have:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestConditionOfAVerdict(t *testing.T) {
	for status, v := range map[string]Verdict{"True": {}, "False": {Reason: steading.ReasonDefinitionsOutdated, Message: "m"}} {
		if c := v.Condition(); string(c.Status) != status || c.Reason == "" || c.Message != v.Message || c.Type != xpv2.ConditionType("DefinitionsCurrent") {
			t.Errorf("have %+v, want status %s", c, status)
		}
	}
}

func TestFind(t *testing.T) {
	k := Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1alpha1"}, Schema: spec(t, `{properties: {a: {}}}`)}
	served := func(edit ...func(*extv1.CustomResourceDefinition)) *extv1.CustomResourceDefinition {
		s := spec(t, `{properties: {a: {}}}`)
		c := &extv1.CustomResourceDefinition{
			Spec:   extv1.CustomResourceDefinitionSpec{Versions: []extv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true, Storage: true, Schema: &extv1.CustomResourceValidation{OpenAPIV3Schema: &s}}}},
			Status: extv1.CustomResourceDefinitionStatus{Conditions: []extv1.CustomResourceDefinitionCondition{{Type: extv1.Established, Status: extv1.ConditionTrue}}},
		}
		for _, e := range edit {
			e(c)
		}
		return c
	}
	now := metav1.Now()
	cases := map[string]struct {
		reason  string
		served  *extv1.CustomResourceDefinition
		missing []string
		absent  bool
	}{
		"Current":        {"All is there.", served(), nil, false},
		"None":           {"There is none.", nil, nil, true},
		"Leaving":        {"It is being deleted, and with it all objects.", served(func(c *extv1.CustomResourceDefinition) { c.DeletionTimestamp = &now }), nil, true},
		"NotEstablished": {"It is not served yet.", served(func(c *extv1.CustomResourceDefinition) { c.Status.Conditions = nil }), nil, true},
		"OtherVersion":   {"The version that is written is not served.", served(func(c *extv1.CustomResourceDefinition) { c.Spec.Versions[0].Name = "v1" }), []string{"version v1alpha1"}, false},
		"NotServed":      {"It is there and not served.", served(func(c *extv1.CustomResourceDefinition) { c.Spec.Versions[0].Served = false }), []string{"version v1alpha1"}, false},
		"NoSchema":       {"It keeps nothing.", served(func(c *extv1.CustomResourceDefinition) { c.Spec.Versions[0].Schema = nil }), []string{"spec"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := k.Find(tc.served)
			if !cmp.Equal(f.Missing, tc.missing) || f.Absent != tc.absent || f.Current() != (len(tc.missing) == 0 && !tc.absent) {
				t.Errorf("%s have missing %q, absent %t", tc.reason, strings.Join(f.Missing, ", "), f.Absent)
			}
		})
	}
}
