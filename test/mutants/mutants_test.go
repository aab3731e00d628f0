package mutants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryPatchApplies finds patches that the code has left behind without running a single mutant.
func TestEveryPatchApplies(t *testing.T) {
	all, err := Read(".")
	if err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Copy(t.Context(), source, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		m.Path = filepath.Join(source, "test", "mutants", m.Path)
		if err := tree.Apply(t.Context(), m); err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		if err := tree.Revert(t.Context(), m); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	cases := map[string]struct {
		reason, patch, want string
	}{
		"NoHeader": {"A patch says what it breaks.", "--- a/x\n+++ b/x\n", "no header"},
		"NoTest":   {"A patch names who has to notice.", "Mutant: x\nKilled-by: ./x\n\n--- a/x\n", "Killed-by: ./<package> Test<name>"},
		"Unknown":  {"What is not known is a mistake.", "Mutant: x\nKilled: ./x TestX\n\n--- a/x\n", "takes Mutant: and Killed-by:"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "x.patch"), []byte(tc.patch), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s have %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestHunt hunts in a small module: what lives is found to live, what dies to die, and what does not build to be neither.
func TestHunt(t *testing.T) {
	dir, patches := t.TempDir(), t.TempDir()
	write := func(path, content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "go.mod"), "module small\n\ngo 1.26\n")
	write(filepath.Join(dir, "small.go"), "package small\n\nfunc one() int {\n\treturn 1\n}\n")
	write(filepath.Join(dir, "small_test.go"), "package small\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif one() < 1 {\n\t\tt.Fail()\n\t}\n}\n")
	for name, to := range map[string]string{"dies": "0", "lives": "2", "breaks": `"1"`} {
		write(filepath.Join(patches, name+".patch"), "Mutant: one is "+to+"\nKilled-by: ./. TestOne\n\n"+
			"--- a/small.go\n+++ b/small.go\n@@ -3,3 +3,3 @@\n func one() int {\n-\treturn 1\n+\treturn "+to+"\n }\n")
	}
	write(filepath.Join(patches, "stale.patch"), "Mutant: two\nKilled-by: ./. TestOne\n\n--- a/small.go\n+++ b/small.go\n@@ -3,3 +3,3 @@\n func two() int {\n-\treturn 2\n+\treturn 3\n }\n")
	all, err := Read(patches)
	if err != nil {
		t.Fatal(err)
	}
	tree := Tree{Dir: dir}
	if err := tree.Sound(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	want := map[string]Verdict{"dies": Killed, "lives": Alive, "breaks": Stillborn, "stale": Stillborn}
	for _, m := range all {
		if r := tree.Hunt(t.Context(), m); r.Verdict != want[m.Name] {
			t.Errorf("%s is %s, want %s: %s", m.Name, r.Verdict, want[m.Name], r.Why)
		}
	}
	if err := tree.Sound(t.Context(), []Mutant{{Package: "./.", Test: "TestTwo"}}); err == nil {
		t.Error("a test that does not exist is sound")
	}
}
