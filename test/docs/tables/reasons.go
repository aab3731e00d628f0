package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// A reason as docs/reasons.yaml explains it.
type reason struct {
	// Conditions that may have it.
	Conditions []string `json:"conditions"`
	// Means is what is true.
	Means string `json:"means"`
	// Do is what to do about it. Empty: nothing.
	Do string `json:"do,omitempty"`
}

func readReasons(top string) (map[string]reason, error) {
	raw, err := os.ReadFile(filepath.Join(top, "docs", "reasons.yaml")) //nolint:gosec // A file of ours.
	if err != nil {
		return nil, fmt.Errorf("cannot read reasons: %w", err)
	}
	r := map[string]reason{}
	if err := yaml.UnmarshalStrict(raw, &r); err != nil {
		return nil, fmt.Errorf("cannot read docs/reasons.yaml: %w", err)
	}
	return r, nil
}

// A constant of the API, and its value.
type constant struct{ name, value string }

// constants of apis/v1alpha1/conditions.go whose names start with prefix, in order.
func constants(top, prefix string) ([]constant, error) {
	path := filepath.Join(top, "apis", "v1alpha1", "conditions.go")
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read constants: %w", err)
	}
	var out []constant
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 || !strings.HasPrefix(v.Names[0].Name, prefix) {
			return true
		}
		if l, ok := v.Values[0].(*ast.BasicLit); ok {
			value, uerr := strconv.Unquote(l.Value)
			if uerr != nil {
				err = uerr
			}
			out = append(out, constant{v.Names[0].Name, value})
		}
		return true
	})
	return out, err
}

func reasonsTable(top string) (string, error) {
	reasons, err := readReasons(top)
	if err != nil {
		return "", err
	}
	consts, err := constants(top, "Reason")
	if err != nil {
		return "", err
	}
	conditions, err := constants(top, "Condition")
	if err != nil {
		return "", err
	}
	if err := agree(reasons, consts, conditions); err != nil {
		return "", err
	}
	out := &strings.Builder{}
	for _, c := range conditions {
		rows := rowsOf(reasons, consts, c.value)
		if len(rows) > 0 {
			fmt.Fprintf(out, "### %s\n\n| reason | means | do |\n|---|---|---|\n%s\n\n", c.value, strings.Join(rows, "\n"))
		}
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

func rowsOf(reasons map[string]reason, consts []constant, condition string) (rows []string) {
	for _, c := range consts {
		r := reasons[c.value]
		if !slices.Contains(r.Conditions, condition) {
			continue
		}
		do := r.Do
		if do == "" {
			do = "-"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", c.value, r.Means, do))
	}
	return rows
}

// agree that every constant is explained, and that nothing else is.
func agree(reasons map[string]reason, consts, conditions []constant) error {
	var wrong []string
	known := map[string]bool{}
	for _, c := range consts {
		known[c.value] = true
		if r := reasons[c.value]; r.Means == "" || len(r.Conditions) == 0 {
			wrong = append(wrong, c.name+" is not explained")
		}
	}
	for value, r := range reasons {
		if !known[value] {
			wrong = append(wrong, value+" is no constant")
		}
		for _, condition := range r.Conditions {
			if !slices.ContainsFunc(conditions, func(c constant) bool { return c.value == condition }) {
				wrong = append(wrong, value+" is of a condition that does not exist, "+condition)
			}
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("docs/reasons.yaml does not agree with apis/v1alpha1/conditions.go: %s", strings.Join(wrong, "; "))
	}
	return nil
}
