// Package imports holds every package of the module to the table in CONTRIBUTING.md: imports go down only.
package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	top    = "../.."
	module = "github.com/steading-dev/steading/"
)

// lentToTests are folders that the tests of all others may import from.
var lentToTests = []string{"cluster", "test"}

// A table says which other folders each folder may import from.
type table map[string][]string

var (
	row  = regexp.MustCompile("^\\| (`[a-z`, ]+`) \\|.*\\|([^|]*)\\|$")
	name = regexp.MustCompile("`([a-z]+)`")
)

// parse the table of a page whose rows end in what a folder may import: names, nothing, or all of those above.
func parse(page string) (table, error) {
	t := table{}
	var above []string
	for line := range strings.SplitSeq(page, "\n") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var may []string
		switch cell := strings.TrimSpace(m[2]); cell {
		case "", "nothing of ours":
		case "all of these":
			may = slices.Clone(above)
		default:
			if may = namesIn(cell); len(may) == 0 {
				return nil, fmt.Errorf("%q names no folder", cell)
			}
		}
		folders := namesIn(m[1])
		for _, f := range folders {
			t[f] = may
		}
		above = append(above, folders...)
	}
	return t, nil
}

func namesIn(s string) []string {
	var all []string
	for _, m := range name.FindAllStringSubmatch(s, -1) {
		all = append(all, m[1])
	}
	return all
}

// A listed package, as go list says it.
type listed struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// judge says what is wrong with a package's imports.
func (t table) judge(p listed) []string {
	var wrong []string
	from := strings.TrimPrefix(p.ImportPath, module)
	folder, _, _ := strings.Cut(from, "/")
	may, known := t[folder]
	if !known {
		return []string{from + " is in a folder that the table does not have"}
	}
	check := func(imports, may []string, what string) {
		for _, i := range imports {
			to, ours := strings.CutPrefix(i, module)
			if !ours {
				continue
			}
			other, _, _ := strings.Cut(to, "/")
			switch {
			case other == folder && providerOf(from) != providerOf(to) && providerOf(to) != "internal":
				wrong = append(wrong, fmt.Sprintf("%s%s imports %s: no provider imports another", what, from, to))
			case other != folder && !slices.Contains(may, other):
				wrong = append(wrong, fmt.Sprintf("%s%s imports %s: %s may not import %s", what, from, to, folder, other))
			}
		}
	}
	check(p.Imports, may, "")
	check(slices.Concat(p.TestImports, p.XTestImports), slices.Concat(may, lentToTests), "the test of ")
	return wrong
}

// providerOf is the provider that a package belongs to, internal for what all share, empty for what belongs to none.
func providerOf(path string) string {
	rest, ok := strings.CutPrefix(path, "providers/")
	if !ok {
		return ""
	}
	provider, _, _ := strings.Cut(rest, "/")
	return provider
}

// packages of the module, with those that only some builds have.
func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags=long", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = top
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("cannot list packages: %v\n%s", err, said.String())
	}
	var all []listed
	for d := json.NewDecoder(&out); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestImportsGoDown holds what is there to what CONTRIBUTING.md says.
func TestImportsGoDown(t *testing.T) {
	page, err := os.ReadFile(top + "/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := parse(string(page))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range packages(t) {
		folder, _, _ := strings.Cut(strings.TrimPrefix(p.ImportPath, module), "/")
		seen[folder] = true
		for _, w := range rules.judge(p) {
			t.Error(w)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(rules)) {
		if hasGo := f != "compositions"; hasGo && !seen[f] {
			t.Errorf("the table has %s, in which there is no package", f)
		}
	}
}

// TestTableIsRead as it is written.
func TestTableIsRead(t *testing.T) {
	have, err := parse("| folder | what | may import |\n|---|---|---|\n| `a` | `x` | nothing of ours |\n| `b`, `c` | y | `a` |\n| `d` | z | |\n| `e` | all | all of these |\n")
	if err != nil {
		t.Fatal(err)
	}
	want := table{"a": nil, "b": {"a"}, "c": {"a"}, "d": nil, "e": {"a", "b", "c", "d"}}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
	if _, err := parse("| `a` | x | whatever |\n"); err == nil {
		t.Error("what may be imported is not said, and that is taken")
	}
}

func TestJudge(t *testing.T) {
	rules := table{"apis": nil, "functions": {"apis"}, "providers": {"apis"}, "cluster": {"apis", "functions", "providers"}}
	cases := map[string]struct {
		reason string
		listed listed
		wrong  int
	}{
		"Down":      {"The table has it.", listed{ImportPath: module + "providers/x", Imports: []string{"fmt", module + "apis/names", module + "providers/internal/kit"}}, 0},
		"Up":        {"The table does not have it.", listed{ImportPath: module + "providers/x", Imports: []string{module + "cluster/install"}}, 1},
		"Test":      {"Tests may use planes and fakes.", listed{ImportPath: module + "providers/x", TestImports: []string{module + "cluster/local"}, XTestImports: []string{module + "test/fakes"}}, 0},
		"TestsTest": {"They may not use whatever they like.", listed{ImportPath: module + "providers/x", XTestImports: []string{module + "functions/x"}}, 1},
		"Provider":  {"No provider imports another.", listed{ImportPath: module + "providers/x", Imports: []string{module + "providers/y"}}, 1},
		"Own":       {"A folder may import from itself.", listed{ImportPath: module + "functions/x", Imports: []string{module + "functions/y"}}, 0},
		"Unknown":   {"Every folder is in the table.", listed{ImportPath: module + "utils/x"}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if have := rules.judge(tc.listed); len(have) != tc.wrong {
				t.Errorf("%s have %q", tc.reason, have)
			}
		})
	}
}
