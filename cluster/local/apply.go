package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// fieldOwner of what a plane applies.
	fieldOwner = client.FieldOwner("steading-local")
	// serveTimeout is how long a new kind may take until it is served.
	serveTimeout = 30 * time.Second
)

// Apply objects in the order given, by server-side apply. CRDs are waited for
// before anything that follows them.
func (p *Plane) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	var fresh []string
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			fresh = append(fresh, o.GetName())
		} else if len(fresh) > 0 {
			if err := p.waitEstablished(ctx, fresh...); err != nil {
				return err
			}
			fresh = nil
		}
		if err := p.applyOne(ctx, o); err != nil {
			return fmt.Errorf("cannot apply %s %s: %w", o.GetKind(), strings.TrimPrefix(client.ObjectKeyFromObject(o).String(), "/"), err)
		}
	}
	return p.waitEstablished(ctx, fresh...)
}

// ApplyFiles applies the objects in YAML files, and in the YAML files of
// folders and what is below them, in the order of their names.
func (p *Plane) ApplyFiles(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		files, err := yamlFiles(path)
		if err != nil {
			return err
		}
		for _, f := range files {
			objects, err := ReadObjects(f)
			if err != nil {
				return err
			}
			if err := p.Apply(ctx, objects...); err != nil {
				return fmt.Errorf("%s: %w", f, err)
			}
		}
	}
	return nil
}

// applyOne retries while the API server does not know the object's kind or
// namespace yet, though they have just been made.
func (p *Plane) applyOne(ctx context.Context, o *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	for {
		// A copy: the answer of the server is written into what is applied.
		err := p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), fieldOwner, client.ForceOwnership)
		if err == nil || !meta.IsNoMatchError(err) && !kerrors.IsNotFound(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (p *Plane) waitEstablished(ctx context.Context, crds ...string) error {
	for _, name := range crds {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := p.waitFor(ctx, serveTimeout, func(ctx context.Context) (bool, error) {
			if err := p.client.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
				return false, err
			}
			return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			}), nil
		})
		if err != nil {
			return fmt.Errorf("cannot wait until CustomResourceDefinition %s is established: %w", name, err)
		}
	}
	return nil
}

// waitFor polls until done. If that takes too long the error is what stood in
// the way last.
func (p *Plane) waitFor(ctx context.Context, within time.Duration, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var obstacle error
	for {
		ok, err := done(ctx)
		if err == nil && ok {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			obstacle = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(obstacle, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// yamlFiles is the file itself, or all YAML files below a folder. Kustomize's
// own files are no manifests.
func yamlFiles(path string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(path, func(f string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && d.Name() == "testdata" {
				return fs.SkipDir
			}
			return err
		}
		if ext := filepath.Ext(f); (ext == ".yaml" || ext == ".yml") && d.Name() != "kustomization.yaml" {
			files = append(files, f)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot find manifests: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("cannot find manifests: no YAML file in %s", path)
	}
	return files, nil
}

// ReadObjects reads the objects of a YAML file.
func ReadObjects(path string) ([]*unstructured.Unstructured, error) {
	b, err := os.ReadFile(path) //nolint:gosec // What the caller names.
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests: %w", err)
	}
	objects, err := parseObjects(b)
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests: %s: %w", path, err)
	}
	return objects, nil
}

func parseObjects(manifests []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); err != nil {
			if errors.Is(err, io.EOF) {
				return objects, nil
			}
			return nil, err
		}
		if len(o.Object) == 0 {
			continue // Comments only.
		}
		if o.GetKind() == "" || o.GetName() == "" {
			return nil, fmt.Errorf("object %d has no kind or no name", len(objects)+1)
		}
		objects = append(objects, o)
	}
}
