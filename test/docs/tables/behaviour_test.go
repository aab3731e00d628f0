package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// items that docs/behaviour.md has to have a verdict on: the source design's acceptance list, placement table and image
// table; of runner pools the rules, the acceptance list and others' reports, by number. An item may be split, by letters.
var items = map[string]int{"": 17, "P": 5, "I": 6, "R": 20, "A": 18, "B": 27}

// row of docs/behaviour.md.
type row struct{ id, asks, verdict, how string }

var cell = regexp.MustCompile(`^\| ([PIRAB]?\d+[a-z]?) \|(.*)\|(.*)\|(.*)\|$`)

func behaviour(t *testing.T) (rows []row) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(top, "docs", "behaviour.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(raw), "\n") {
		if m := cell.FindStringSubmatch(line); m != nil {
			rows = append(rows, row{m[1], strings.TrimSpace(m[2]), strings.TrimSpace(m[3]), strings.TrimSpace(m[4])})
		} else if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| item") && !strings.HasPrefix(line, "| row") {
			t.Errorf("docs/behaviour.md: not a row: %s", line)
		}
	}
	return rows
}

func TestEveryItemHasAVerdict(t *testing.T) {
	has := map[string]bool{}
	for _, r := range behaviour(t) {
		has[strings.TrimRight(r.id, "abcdefgh")] = true
		named := testName.MatchString(r.how)
		switch {
		case r.asks == "":
			t.Errorf("item %s does not say what it asks for", r.id)
		case (r.verdict == "kept" || r.verdict == "replaced") && !named:
			t.Errorf("item %s is %s and names no test", r.id, r.verdict)
		case r.verdict == "dropped" && r.how == "":
			t.Errorf("item %s is dropped without a reason", r.id)
		case r.verdict != "kept" && r.verdict != "replaced" && r.verdict != "dropped":
			t.Errorf("item %s has no verdict: %q", r.id, r.verdict)
		}
	}
	for prefix, n := range items {
		for i := 1; i <= n; i++ {
			if id := prefix + strconv.Itoa(i); !has[id] {
				t.Errorf("item %s is missing", id)
			}
		}
	}
}

// testName is a test, perhaps with one of its cases: `TestDecideOnOne/AllFull`.
var testName = regexp.MustCompile("`(Test[A-Za-z0-9_]+)(?:/([^`]+))?`")

func TestNamedTestsExist(t *testing.T) {
	tests := testsOf(t)
	for _, r := range behaviour(t) {
		for _, m := range testName.FindAllStringSubmatch(r.how, -1) {
			packages := tests[m[1]]
			if len(packages) == 0 {
				t.Errorf("item %s names test %s, which does not exist", r.id, m[1])
				continue
			}
			if m[2] == "" {
				continue
			}
			found := false
			for _, literals := range packages {
				found = found || literals[m[2]]
			}
			if !found {
				t.Errorf("item %s names case %s of test %s, which does not exist", r.id, m[2], m[1])
			}
		}
	}
}

// testsOf the tree: by name, the string literals of the test files of each package that has one of that name.
func testsOf(t *testing.T) map[string][]map[string]bool {
	t.Helper()
	literals := map[string]map[string]bool{} // By folder.
	folders := map[string]map[string]bool{}  // By test.
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if literals[dir] == nil {
			literals[dir] = map[string]bool{}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && strings.HasPrefix(n.Name.Name, "Test") {
					if folders[n.Name.Name] == nil {
						folders[n.Name.Name] = map[string]bool{}
					}
					folders[n.Name.Name][dir] = true
				}
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					literals[dir][s] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]map[string]bool{}
	for name, dirs := range folders {
		for dir := range dirs {
			out[name] = append(out[name], literals[dir])
		}
	}
	return out
}
