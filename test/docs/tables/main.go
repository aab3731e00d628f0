// Command tables writes what docs/ has of generated tables: the reasons in troubleshooting.md, from apis/v1alpha1 and
// docs/reasons.yaml; the metrics in metrics.md, from the sources that register them; the figures in performance.md, from
// docs/benchmarks.json. A test fails when they are not what their sources give.
//
// Each stands between a line "<!-- generated: NAME -->" and the line "<!-- end of generated -->".
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/steading-dev/steading/test/bench/figures"
)

func main() {
	top := flag.String("top", ".", "top of the source tree")
	flag.Parse()
	for name, content := range must(pages(*top)) {
		if err := os.WriteFile(filepath.Join(*top, "docs", name), []byte(content), 0o644); err != nil { //nolint:gosec // For everybody to read.
			fail(err)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		fail(err)
	}
	return v
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "tables:", err)
	os.Exit(1)
}

// tables by the page that they are in. A page has one.
var tables = map[string]func(top string) (string, error){
	"troubleshooting.md": reasonsTable,
	"metrics.md":         metricsTable,
	"performance.md":     figuresTable,
}

// pages with their tables as they should be.
func pages(top string) (map[string]string, error) {
	out := map[string]string{}
	for name, table := range tables {
		raw, err := os.ReadFile(filepath.Join(top, "docs", name)) //nolint:gosec // A page of ours.
		if err != nil {
			return nil, fmt.Errorf("cannot read page: %w", err)
		}
		t, err := table(top)
		if err != nil {
			return nil, err
		}
		if out[name], err = replace(string(raw), t); err != nil {
			return nil, fmt.Errorf("cannot write docs/%s: %w", name, err)
		}
	}
	return out, nil
}

const (
	begin = "<!-- generated: make generate -->\n"
	end   = "<!-- end of generated -->"
)

// replace what stands between the marks.
func replace(page, table string) (string, error) {
	before, rest, ok := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("it has no line %q before a line %q", strings.TrimSpace(begin), end)
	}
	return before + begin + "\n" + table + "\n" + end + after, nil
}

func figuresTable(top string) (string, error) {
	r, err := figures.Read(filepath.Join(top, "docs", "benchmarks.json"))
	if err != nil {
		return "", err
	}
	out := &strings.Builder{}
	err = r.Markdown(out)
	return out.String(), err
}
