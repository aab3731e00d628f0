// Package charts holds the Helm charts that Steading deploys, and renders them.
package charts

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

//go:embed all:runtime
var files embed.FS

// Runtime is the chart that environments are deployed from.
func Runtime() (*chart.Chart, error) {
	f, err := Files(files, "runtime")
	if err != nil {
		return nil, err
	}
	c, err := loader.LoadFiles(f)
	if err != nil {
		return nil, fmt.Errorf("cannot load chart runtime: %w", err)
	}
	return c, nil
}

// Files are a chart's files below a folder, sorted by name, without those that never belong into a package.
func Files(fsys fs.FS, dir string) ([]*loader.BufferedFile, error) {
	var out []*loader.BufferedFile
	err := fs.WalkDir(fsys, dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name := strings.TrimPrefix(p, dir+"/")
		if ignored(name) {
			return nil
		}
		data, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		out = append(out, &loader.BufferedFile{Name: name, Data: data})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read chart %s: %w", dir, err)
	}
	slices.SortFunc(out, func(a, b *loader.BufferedFile) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// ignored are an editor's leavings. The charts have no .helmignore, which would have to be read by everybody alike.
func ignored(name string) bool {
	base := path.Base(name)
	return base == ".DS_Store" || strings.HasSuffix(base, "~") || strings.HasSuffix(base, ".swp") || strings.HasSuffix(base, ".orig")
}
