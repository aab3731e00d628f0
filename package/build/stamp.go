package build

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"
	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/utils/ptr"
)

// path is the registry's path below which everything of this build is.
func (o Options) path() string { return path.Join(o.Registry, o.Repository) }

// pinDependencies of a Configuration on our own packages to those of the same build.
func (o Options) pinDependencies(m metadata) {
	c, ok := m.Pkg.(*pkgmetav1.Configuration)
	if !ok {
		return
	}
	for i, d := range c.Spec.DependsOn {
		if own := path.Base(ptr.Deref(d.Package, "")); o.isOwn(own) {
			c.Spec.DependsOn[i].Package = ptr.To(path.Join(o.path(), own))
			c.Spec.DependsOn[i].Version = o.Version
		}
	}
}

// nameFunctions makes Compositions call our own functions by the names that they have once Crossplane installed them as
// dependencies. In the source tree they are called as their packages.
func (o Options) nameFunctions(objects []map[string]any) error {
	for _, composition := range objects {
		if composition["kind"] != "Composition" {
			continue
		}
		for _, ref := range functionRefs(composition) {
			own, _ := ref["name"].(string)
			if !o.isOwn(own) {
				continue
			}
			installed, err := o.InstalledName(own)
			if err != nil {
				return err
			}
			ref["name"] = installed
		}
	}
	return nil
}

// functionRefs of all steps of a Composition's pipeline.
func functionRefs(composition map[string]any) []map[string]any {
	spec, _ := composition["spec"].(map[string]any)
	pipeline, _ := spec["pipeline"].([]any)
	var refs []map[string]any
	for _, s := range pipeline {
		step, _ := s.(map[string]any)
		if ref, ok := step["functionRef"].(map[string]any); ok {
			refs = append(refs, ref)
		}
	}
	return refs
}

// isOwn is whether a package of that name is in the source tree.
func (o Options) isOwn(pkg string) bool {
	if pkg == "" || pkg != path.Base(pkg) || pkg == "." {
		return false
	}
	_, err := os.Stat(filepath.Join(o.RepoDir, "package", pkg, metadataFile))
	return err == nil
}

// InstalledName is what Crossplane calls one of our packages that it installs as a dependency of another: after its
// repository's path, without the registry. For ghcr.io/steading-dev/function-steading it is steading-dev-function-steading.
func (o Options) InstalledName(pkg string) (string, error) {
	r, err := name.NewRepository(path.Join(o.path(), pkg), name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("cannot tell how Crossplane will name package %s: %w", pkg, err)
	}
	return dnsLabel(r.RepositoryStr()), nil
}

// dnsLabel is made of a repository's path as ToDNSLabel of crossplane-runtime's package xpkg makes it, which would bring
// all that verifies signatures along: separators become dashes, what no label can have is left out, and what comes after
// 63 characters is cut off.
func dnsLabel(repository string) string {
	const last = 62
	var label strings.Builder
	for i := 0; i < len(repository) && i <= last; i++ {
		switch c := repository[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			label.WriteByte(c)
		case strings.IndexByte("./:-", c) >= 0 && i != 0 && i != last && i != len(repository)-1:
			label.WriteByte('-')
		}
	}
	return strings.Trim(label.String(), "-")
}
