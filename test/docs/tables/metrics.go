package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A metric that a source registers.
type metric struct {
	name, kind, help string
	labels           []string
	process          string
}

// processes by the folder of what they are made of.
var processes = map[string]string{"functions": "function", "providers": "provider"}

// metrics that the sources of functions and providers make, by name.
func metrics(top string) ([]metric, error) {
	var all []metric
	for folder, process := range processes {
		err := filepath.WalkDir(filepath.Join(top, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			found, err := metricsOf(path)
			for i := range found {
				found[i].process = process
			}
			all = append(all, found...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("cannot find metrics: %w", err)
		}
	}
	slices.SortFunc(all, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// metricsOf a file: the calls of prometheus.New<Kind> and prometheus.New<Kind>Vec, and of prometheus.NewDesc, by which a collector
// tells of gauges.
func metricsOf(path string) (all []metric, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, 0)
	if err != nil {
		return nil, err
	}
	lists := listsOf(f)
	ast.Inspect(f, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || err != nil {
			return err == nil
		}
		if kind := kindOf(c); kind != "" {
			var m metric
			if m, err = metricOf(c, kind, lists); err != nil {
				err = fmt.Errorf("%s: %w", fset.Position(c.Pos()), err)
			}
			all = append(all, m)
		}
		return true
	})
	return all, err
}

// kindOf the metric that a call makes, if any.
func kindOf(c *ast.CallExpr) string {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if p, ok := s.X.(*ast.Ident); !ok || p.Name != "prometheus" {
		return ""
	}
	if s.Sel.Name == "NewDesc" {
		return described
	}
	kind := strings.TrimSuffix(strings.TrimPrefix(s.Sel.Name, "New"), "Vec")
	if slices.Contains([]string{"Counter", "Gauge", "Histogram", "Summary"}, kind) {
		return strings.ToLower(kind)
	}
	return ""
}

// described by a collector, which are gauges.
const described = "described"

// metricOf a call. Names and helps have to be written out where they are used, so that they can be found.
func metricOf(c *ast.CallExpr, kind string, lists map[string]ast.Expr) (metric, error) {
	m := metric{kind: kind}
	if len(c.Args) == 0 {
		return m, errors.New("cannot read a metric without options")
	}
	if kind == described {
		return describedMetric(c, lists)
	}
	o, ok := c.Args[0].(*ast.CompositeLit)
	if !ok {
		return m, errors.New("cannot read a metric whose options are not written out")
	}
	for _, e := range o.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch key, _ := kv.Key.(*ast.Ident); key.Name {
		case "Name":
			m.name = text(kv.Value)
		case "Help":
			m.help = text(kv.Value)
		}
	}
	if len(c.Args) > 1 {
		m.labels = texts(c.Args[1], lists)
	}
	return m, m.complete()
}

// describedMetric of a call of prometheus.NewDesc.
func describedMetric(c *ast.CallExpr, lists map[string]ast.Expr) (metric, error) {
	if len(c.Args) != 4 {
		return metric{}, errors.New("cannot read a description that has not four arguments")
	}
	m := metric{kind: "gauge", name: text(c.Args[0]), help: text(c.Args[1]), labels: texts(c.Args[2], lists)}
	return m, m.complete()
}

func (m metric) complete() error {
	if m.name == "" || m.help == "" || slices.Contains(m.labels, "") {
		return fmt.Errorf("cannot read metric %q: name, help and labels have to be literals", m.name)
	}
	return nil
}

// listsOf a file are the lists that its variables hold, by name.
func listsOf(f *ast.File) map[string]ast.Expr {
	all := map[string]ast.Expr{}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
			for i, name := range v.Names {
				all[name.Name] = v.Values[i]
			}
		}
		return true
	})
	return all
}

// texts of a list that is written out, or named.
func texts(e ast.Expr, lists map[string]ast.Expr) (all []string) {
	if name, ok := e.(*ast.Ident); ok && name.Name != "nil" {
		if e, ok = lists[name.Name]; !ok {
			return []string{""}
		}
	}
	if l, ok := e.(*ast.CompositeLit); ok {
		for _, e := range l.Elts {
			all = append(all, text(e))
		}
	}
	return all
}

func text(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok {
		if s, err := strconv.Unquote(l.Value); err == nil {
			return s
		}
	}
	return ""
}

func metricsTable(top string) (string, error) {
	all, err := metrics(top)
	if err != nil {
		return "", err
	}
	out := &strings.Builder{}
	out.WriteString("| metric | of | type | labels | is |\n|---|---|---|---|---|\n")
	for _, m := range all {
		labels := "-"
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n", m.name, m.process, m.kind, labels, m.help)
	}
	return out.String(), nil
}
