package build

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Files of a package's folder that describe it: to Crossplane, and to people.
const (
	metadataFile = "crossplane.yaml"
	readmeFile   = "README.md"
)

// metadata of a package, as Crossplane types it: a Provider, Function or Configuration.
type metadata struct {
	pkgmetav1.Pkg

	kind string
}

func (m metadata) name() string { return m.GetName() }

// command is the folder of the package's runtime, empty if it has none.
func (m metadata) command() string {
	switch m.kind {
	case pkgmetav1.ProviderKind:
		return path.Join("providers", strings.TrimPrefix(m.name(), "provider-"), "cmd")
	case pkgmetav1.FunctionKind:
		return "functions/cmd"
	}
	return ""
}

// examples is the folder of the package's examples, below the source tree. Claims are what a Configuration is about.
func (m metadata) examples() string {
	if m.kind == pkgmetav1.ConfigurationKind {
		return path.Join("cluster", "examples")
	}
	return path.Join("package", m.name(), "examples")
}

// contents say where a kind of package has its objects, below the source tree, and which they may be. Crossplane refuses
// packages that hold others.
func (m metadata) contents() (dirs []string, kinds []schema.GroupKind) {
	crd := schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	xp := func(kind string) schema.GroupKind {
		return schema.GroupKind{Group: "apiextensions.crossplane.io", Kind: kind}
	}
	crds := path.Join("package", m.name(), "crds")
	switch m.kind {
	case pkgmetav1.ProviderKind:
		return []string{crds}, []schema.GroupKind{crd, xp("ManagedResourceDefinition")}
	case pkgmetav1.FunctionKind:
		return []string{crds}, []schema.GroupKind{crd}
	}
	return []string{"xrds", "compositions"}, []schema.GroupKind{xp("CompositeResourceDefinition"), xp("Composition"), xp("ManagedResourceActivationPolicy")}
}

// readPackage reads a package's metadata and objects, and writes them as the stream that Crossplane reads.
func readPackage(o Options, name string) ([]byte, metadata, error) {
	m, err := readMetadata(filepath.Join(o.RepoDir, "package", name, metadataFile))
	if err != nil {
		return nil, metadata{}, err
	}
	if m.name() != name {
		return nil, metadata{}, fmt.Errorf("cannot build package %s: its %s calls it %q: call it as its folder", name, metadataFile, m.name())
	}
	if err := m.describe(filepath.Join(o.RepoDir, "package", name, readmeFile)); err != nil {
		return nil, metadata{}, fmt.Errorf("cannot build package %s: %w", name, err)
	}
	o.pinDependencies(m)
	objects, err := readObjects(o.RepoDir, m)
	if err != nil {
		return nil, metadata{}, fmt.Errorf("cannot build package %s: %w", name, err)
	}
	if err := o.nameFunctions(objects); err != nil {
		return nil, metadata{}, fmt.Errorf("cannot build package %s: %w", name, err)
	}
	if m.kind != pkgmetav1.FunctionKind && len(objects) == 0 {
		dirs, _ := m.contents()
		return nil, metadata{}, fmt.Errorf("cannot build package %s: no objects in %s: run make generate", name, strings.Join(dirs, " and "))
	}
	stream, err := marshal(m, objects)
	if err != nil {
		return nil, metadata{}, fmt.Errorf("cannot build package %s: %w", name, err)
	}
	return stream, m, nil
}

// marshal a package's metadata and objects as a stream of documents.
func marshal(m metadata, objects []map[string]any) ([]byte, error) {
	all := []any{m.Pkg}
	for _, o := range objects {
		all = append(all, o)
	}
	b := &bytes.Buffer{}
	for _, o := range all {
		y, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		b.WriteString("---\n")
		b.Write(y)
	}
	return b.Bytes(), nil
}

func readMetadata(file string) (metadata, error) {
	b, err := os.ReadFile(file) //nolint:gosec // G304: a file of the source tree.
	if err != nil {
		return metadata{}, fmt.Errorf("cannot read a package's metadata: %w", err)
	}
	t := metav1.TypeMeta{}
	if err := yaml.Unmarshal(b, &t); err != nil {
		return metadata{}, fmt.Errorf("cannot read %s: %w", file, err)
	}
	if want := pkgmetav1.SchemeGroupVersion.String(); t.APIVersion != want {
		return metadata{}, fmt.Errorf("cannot read %s: its apiVersion is %q, not %q", file, t.APIVersion, want)
	}
	m := metadata{kind: t.Kind}
	switch t.Kind {
	case pkgmetav1.ProviderKind:
		m.Pkg = &pkgmetav1.Provider{}
	case pkgmetav1.FunctionKind:
		m.Pkg = &pkgmetav1.Function{}
	case pkgmetav1.ConfigurationKind:
		m.Pkg = &pkgmetav1.Configuration{}
	default:
		return metadata{}, fmt.Errorf("cannot read %s: its kind is %q, not Provider, Function or Configuration", file, t.Kind)
	}
	if err := yaml.UnmarshalStrict(b, m.Pkg); err != nil {
		return metadata{}, fmt.Errorf("cannot read %s: %w", file, err)
	}
	c := m.GetCrossplaneConstraints()
	if c == nil {
		return metadata{}, fmt.Errorf("cannot read %s: it has no spec.crossplane.version", file)
	}
	if _, err := semver.NewConstraint(c.Version); err != nil {
		return metadata{}, fmt.Errorf("cannot read %s: its spec.crossplane.version %q is no constraint: %w", file, c.Version, err)
	}
	return m, nil
}

// What registries and Crossplane's tools show of a package.
const (
	annotationPrefix = "meta.crossplane.io/"
	annotationReadme = annotationPrefix + "readme"
)

// describe a package by the README beside its metadata, and refuse one that does not say what it is.
func (m metadata) describe(readme string) error {
	for _, what := range []string{"maintainer", "source", "license", "description"} {
		if m.GetAnnotations()[annotationPrefix+what] == "" {
			return fmt.Errorf("its %s has no annotation %s", metadataFile, annotationPrefix+what)
		}
	}
	b, err := os.ReadFile(readme) //nolint:gosec // G304: a file of the source tree.
	if err != nil {
		return fmt.Errorf("it has no readme: %w", err)
	}
	annotations := m.GetAnnotations()
	annotations[annotationReadme] = string(b)
	m.SetAnnotations(annotations)
	return nil
}

// readObjects of a package, in the order of their files.
func readObjects(repoDir string, m metadata) ([]map[string]any, error) {
	dirs, kinds := m.contents()
	var out []map[string]any
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(repoDir, dir, "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			objects, err := decodeFile(f, kinds)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path.Join(dir, filepath.Base(f)), err)
			}
			out = append(out, objects...)
		}
	}
	return out, nil
}

func decodeFile(file string, kinds []schema.GroupKind) ([]map[string]any, error) {
	b, err := os.ReadFile(file) //nolint:gosec // G304: a file of the source tree.
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(b), 4096)
	for {
		u := &unstructured.Unstructured{}
		switch err := d.Decode(&u.Object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case len(u.Object) == 0:
			continue
		}
		if gk := u.GroupVersionKind().GroupKind(); !slices.Contains(kinds, gk) {
			return nil, fmt.Errorf("a %s cannot be in such a package: only %v can", gk, kinds)
		}
		out = append(out, u.Object)
	}
}
