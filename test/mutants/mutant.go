// Package mutants breaks the code on purpose, one checked-in patch at a time, and expects the test that each patch names to
// notice. A mutant that lives shows that a promise is not tested; a patch that no longer applies has to be made anew.
//
// Run them with `make mutants`; with MUTANTS=<regexp>, some of them.
package mutants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Mutant is a patch and the test that has to fail with it.
type Mutant struct {
	// Name is the patch's file name without its ending.
	Name string
	// What the patch breaks.
	What string
	// Package and Test that has to fail: a path such as ./providers/runtime/oci and a test's name.
	Package, Test string
	// Path of the patch.
	Path string
}

// Read the mutants in a folder.
func Read(dir string) ([]Mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("cannot find mutants: no patch in %s", dir)
	}
	mutants := make([]Mutant, 0, len(paths))
	for _, path := range paths {
		m, err := read(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read mutant %s: %w", filepath.Base(path), err)
		}
		mutants = append(mutants, m)
	}
	return mutants, nil
}

func read(path string) (Mutant, error) {
	b, err := os.ReadFile(path) //nolint:gosec // A patch of ours.
	if err != nil {
		return Mutant{}, err
	}
	m := Mutant{Name: strings.TrimSuffix(filepath.Base(path), ".patch"), Path: path}
	header, _, ok := strings.Cut(string(b), "\n\n")
	if !ok {
		return m, errors.New("it has no header: write Mutant: and Killed-by: lines and an empty line before the patch")
	}
	for line := range strings.Lines(header) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Mutant":
			m.What = value
		case "Killed-by":
			m.Package, m.Test, _ = strings.Cut(value, " ")
		default:
			return m, fmt.Errorf("its header has a line %q: it takes Mutant: and Killed-by: lines", line)
		}
	}
	if m.What == "" || !strings.HasPrefix(m.Package, "./") || !strings.HasPrefix(m.Test, "Test") {
		return m, errors.New("its header has to have Mutant: <what it breaks> and Killed-by: ./<package> Test<name>")
	}
	return m, nil
}
