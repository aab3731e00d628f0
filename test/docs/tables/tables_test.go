package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// top of the source tree, seen from this folder.
const top = "../../.."

func TestTablesHaveNotDrifted(t *testing.T) {
	want, err := pages(top)
	if err != nil {
		t.Fatal(err)
	}
	for name := range want {
		have, err := os.ReadFile(filepath.Join(top, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[name], string(have)); diff != "" {
			t.Errorf("docs/%s is not what its source gives; run make generate:\n%s", name, diff)
		}
	}
}

func TestReasonsAgree(t *testing.T) {
	consts, conditions := []constant{{"ReasonA", "A"}}, []constant{{"ConditionPlaced", "Placed"}}
	explained := reason{Conditions: []string{"Placed"}, Means: "it is so"}
	cases := map[string]struct {
		reason  string
		reasons map[string]reason
		want    string
	}{
		"Agree":     {reason: "each constant is explained", reasons: map[string]reason{"A": explained}},
		"Missing":   {reason: "a constant is not", reasons: map[string]reason{}, want: "ReasonA is not explained"},
		"Extra":     {reason: "something else is", reasons: map[string]reason{"A": explained, "B": explained}, want: "B is no constant"},
		"Condition": {reason: "a condition has to exist", reasons: map[string]reason{"A": {Conditions: []string{"Moved"}, Means: "it is so"}}, want: "Moved"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := agree(tc.reasons, consts, conditions)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: have error %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestMetricsAreFound(t *testing.T) {
	source := filepath.Join(t.TempDir(), "x.go")
	write := func(s string) {
		if err := os.WriteFile(source, []byte("package x\n"+s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("var v = prometheus.NewCounterVec(prometheus.CounterOpts{Name: \"a_total\", Help: \"As.\"}, []string{\"b\"})\nvar g = prometheus.NewGauge(prometheus.GaugeOpts{Name: \"c\", Help: \"Cs.\"})\nvar r = prometheus.NewRegistry()\nvar d = prometheus.NewDesc(\"e\", \"Es.\", []string{\"f\"}, nil)\nvar by = []string{\"h\"}\nvar w = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: \"g\", Help: \"Gs.\"}, by)\n")
	have, err := metricsOf(source)
	if err != nil {
		t.Fatal(err)
	}
	want := []metric{{name: "a_total", kind: "counter", help: "As.", labels: []string{"b"}}, {name: "c", kind: "gauge", help: "Cs."}, {name: "e", kind: "gauge", help: "Es.", labels: []string{"f"}}, {name: "g", kind: "gauge", help: "Gs.", labels: []string{"h"}}}
	if diff := cmp.Diff(want, have, cmp.AllowUnexported(metric{})); diff != "" {
		t.Error(diff)
	}
	write("var g = prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: \"Cs.\"})\n")
	if _, err := metricsOf(source); err == nil {
		t.Error("a metric whose name is not written out is passed over")
	}
}

// bounded labels have few values, whatever people make: those of constants, and the names of tenants and of their pools, of which
// there are as many as the operator and the quotas allow. None is of an environment, a context, a runner or a job.
var bounded = []string{"kind", "operation", "outcome", "phase", "pool", "reason", "result", "target", "tenant", "verdict"}

// TestLabelsAreBounded, so that no metric grows with what people make (actions-runner-controller#3670, #4612).
func TestLabelsAreBounded(t *testing.T) {
	all, err := metrics(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		for _, l := range m.labels {
			if !slices.Contains(bounded, l) {
				t.Errorf("%s has the label %s, which may have any number of values", m.name, l)
			}
		}
	}
}

func TestReplaceWantsItsMarks(t *testing.T) {
	have, err := replace("a\n"+begin+"old\n"+end+"\nb\n", "new")
	if err != nil {
		t.Fatal(err)
	}
	if want := "a\n" + begin + "\nnew\n" + end + "\nb\n"; have != want {
		t.Errorf("have %q, want %q", have, want)
	}
	if _, err := replace("a\n", "new"); err == nil {
		t.Error("a page without marks is taken")
	}
}

// TestEveryVerdictIsExplained: docs/runners.md has a row for each reason that a runner may end for, and no other.
func TestEveryVerdictIsExplained(t *testing.T) {
	crd := extv1.CustomResourceDefinition{}
	raw, err := os.ReadFile(filepath.Join(top, "package/provider-forgejo/crds/forgejo.steading.dev_runnerinstances.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, e := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["atProvider"].Properties["reason"].Enum {
		want = append(want, strings.Trim(string(e.Raw), `"`))
	}
	page, err := os.ReadFile(filepath.Join(top, "docs", "runners.md"))
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| (?:Completed|Failed) \\|").FindAllSubmatch(page, -1) {
		have = append(have, string(row[1]))
	}
	slices.Sort(want)
	slices.Sort(have)
	if diff := cmp.Diff(want, have); diff != "" || len(want) == 0 {
		t.Errorf("verdicts, -of the definition, +of docs/runners.md:\n%s", diff)
	}
}
