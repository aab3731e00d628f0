package release

import (
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steading-dev/steading/providers/runtime/render"
)

// attempts are the records that tell what of the release may be on the cluster, oldest first: the revision that Helm calls
// deployed, and all that was tried since, each of which may have made and changed whatever it names. Helm itself compares an
// upgrade with the deployed revision alone, and takes down what the last one names alone; the rest it would leave.
func (e *helmEngine) attempts() ([]*helm.Release, error) {
	rs, err := e.cfg.Releases.History(e.name)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read Helm release %s", e.name)
	}
	if len(rs) == 0 {
		return nil, errors.Errorf("no record of Helm release %s can be read", e.name)
	}
	releaseutil.SortByRevision(rs)
	var tried []*helm.Release
	for _, r := range rs {
		switch r.Info.Status {
		case helm.StatusDeployed:
			tried = []*helm.Release{r}
		case helm.StatusSuperseded:
		default:
			tried = append(tried, r)
		}
	}
	if len(tried) == 0 {
		tried = rs[len(rs)-1:]
	}
	for _, r := range tried {
		if err := e.disown(r); err != nil {
			return nil, err
		}
	}
	return tried, nil
}

// comparedWith gives Helm's records as an upgrade is to see them: as if the deployed revision, which Helm compares with, were
// all that was tried. The record itself stays as it is, since it is what is gone back to.
func (e *helmEngine) comparedWith(tried []*helm.Release) (*storage.Storage, error) {
	from, failed := tried[0], tried[1:]
	if from.Info.Status != helm.StatusDeployed {
		// None ever was, and Helm compares with the last.
		return e.cfg.Releases, e.gather(tried)
	}
	if len(failed) == 0 {
		return e.cfg.Releases, nil
	}
	if err := e.gather(failed); err != nil {
		return nil, err
	}
	m, err := together(from, failed[len(failed)-1])
	if err != nil {
		return nil, errors.Wrapf(err, "cannot put together what there is of Helm release %s", e.name)
	}
	return storage.Init(inDisguise{Driver: e.cfg.Releases.Driver, revision: from.Version, own: from.Manifest, shown: string(m)}), nil
}

// gather what all of these have in their manifests into that of the last, which failed or is taken down: Helm forgets the
// others.
func (e *helmEngine) gather(rs []*helm.Release) error {
	if len(rs) < 2 {
		return nil
	}
	m, err := together(rs...)
	if err != nil {
		return errors.Wrapf(err, "cannot put together what there is of Helm release %s", e.name)
	}
	last := rs[len(rs)-1]
	last.Manifest = string(m)
	return errors.Wrapf(e.cfg.Releases.Update(last), "cannot keep what there is of Helm release %s in its last record", e.name)
}

// together is one manifest of all the objects that records have in theirs.
func together(rs ...*helm.Release) (manifest, error) {
	type key struct {
		schema.GroupKind
		namespace, name string
	}
	at := map[key]int{}
	var all []*unstructured.Unstructured
	for _, r := range rs {
		objs, err := render.Objects([]byte(r.Manifest))
		if err != nil {
			return nil, err
		}
		for _, obj := range objs {
			k := key{obj.GroupVersionKind().GroupKind(), obj.GetNamespace(), obj.GetName()}
			if i, ok := at[k]; ok {
				all[i] = joined(all[i], obj)
				continue
			}
			at[k] = len(all)
			all = append(all, obj)
		}
	}
	return manifestOf(all)
}

// inDisguise is a store of records that shows one revision with another manifest than its own.
type inDisguise struct {
	driver.Driver
	revision   int
	own, shown string
}

// Query shows the revision with the other manifest.
func (d inDisguise) Query(labels map[string]string) ([]*helm.Release, error) {
	rs, err := d.Driver.Query(labels)
	out := slices.Clone(rs)
	for i, r := range out {
		out[i] = d.with(d.shown, r)
	}
	return out, err // Helm asks what kind of error it is: it is not wrapped.
}

// Update keeps the revision's own manifest.
func (d inDisguise) Update(key string, r *helm.Release) error {
	return d.Driver.Update(key, d.with(d.own, r))
}

func (d inDisguise) with(manifest string, r *helm.Release) *helm.Release {
	if r.Version != d.revision {
		return r
	}
	c := *r
	c.Manifest = manifest
	return &c
}
