package release

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"strconv"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/kube"
	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/client-go/rest"

	"github.com/steading-dev/steading/providers/runtime/render"
)

// operationTimeout bounds one Helm operation.
const operationTimeout = 5 * time.Minute

func init() { kube.ManagedFieldsManager = "steading-helm" }

// A helmEngine drives Helm for one release.
type helmEngine struct {
	cfg *action.Configuration
	// renderer of charts, each in a process of its own.
	renderer *render.Renderer
	// rest is what templates look things up with. Nil: nothing is found.
	rest *rest.Config
	name string
	// live objects, to tell whose they are.
	live live
	// witness of the requests. May be nil.
	witness *witness
	stamp
}

// A deployment is what is to be deployed.
type deployment struct {
	// chart returns the chart's archive.
	chart  func() ([]byte, error)
	values map[string]any
	labels map[string]string
	// description goes into Helm's record.
	description string
}

// A prepared deployment has been rendered and checked. What was rendered is what is installed: a chart may render something
// else each time.
type prepared struct {
	// chart as Helm records it: without its templates, which nobody renders any more.
	chart    *chart.Chart
	manifest manifest
	values   map[string]any
	labels   map[string]string
	// description goes into Helm's record.
	description string
}

// deploy installs or upgrades, after repairing what an operation that died has left.
func (e *helmEngine) deploy(ctx context.Context, d deployment) error {
	last, err := e.repaired()
	if err != nil {
		return err
	}
	p, err := e.prepare(ctx, d, last)
	if err != nil {
		return err
	}
	if last == nil {
		return e.install(p)
	}
	return e.upgrade(p)
}

// install and upgrade take no context. Helm would abandon what it does rather than end it, and when a context ends just
// after an upgrade did, Helm may still mark the upgrade failed. Each of its requests has a timeout of its own.
func (e *helmEngine) install(p prepared) error {
	in := action.NewInstall(e.cfg)
	in.ReleaseName, in.Namespace = e.name, e.namespace
	in.Description = p.description
	in.Labels = set(p.labels)
	in.PostRenderer = p.manifest
	in.Timeout = operationTimeout
	in.DisableHooks, in.SkipCRDs, in.DisableOpenAPIValidation = true, true, true
	_, err := in.Run(p.chart, p.values)
	return errors.Wrapf(e.witness.judge(err), "cannot install Helm release %s", e.name)
}

func (e *helmEngine) upgrade(p prepared) error {
	tried, err := e.attempts()
	if err != nil {
		return err
	}
	cfg := *e.cfg
	if cfg.Releases, err = e.comparedWith(tried); err != nil {
		return err
	}
	up := action.NewUpgrade(&cfg)
	up.Namespace = e.namespace
	up.Description = p.description
	up.Labels = p.labels
	up.PostRenderer = p.manifest
	up.Timeout = operationTimeout
	up.MaxHistory = historyMax
	up.ResetValues = true
	up.DisableHooks, up.SkipCRDs, up.DisableOpenAPIValidation = true, true, true
	_, err = up.Run(e.name, p.chart, p.values)
	return errors.Wrapf(e.witness.judge(err), "cannot upgrade Helm release %s", e.name)
}

// rollback deploys what an earlier revision did, object by object, and leaves nothing of what was tried since. It is an upgrade,
// so that it goes through the same checks and its record tells what was rolled back.
func (e *helmEngine) rollback(to int64, labels map[string]string, description string) error {
	if _, err := e.repaired(); err != nil {
		return err
	}
	old, err := e.cfg.Releases.Get(e.name, int(to))
	if err != nil {
		return errors.Wrapf(err, "cannot read revision %d of Helm release %s", to, e.name)
	}
	objs, err := render.Objects([]byte(old.Manifest))
	if err != nil {
		return errors.Wrapf(err, "cannot read the manifest of revision %d of Helm release %s", to, e.name)
	}
	m, err := e.all(objs)
	if err != nil {
		return err
	}
	return e.upgrade(prepared{
		chart: recorded(old.Chart.Metadata.Name, old.Chart.Metadata.Version, old.Chart.Metadata.AppVersion), manifest: m,
		values: old.Config, labels: labels, description: description,
	})
}

// uninstall takes the release down, and nothing of another's. One that does not exist is down.
func (e *helmEngine) uninstall() error {
	_, err := e.cfg.Releases.Last(e.name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot read Helm release %s", e.name)
	}
	tried, err := e.attempts()
	if err != nil {
		return err
	}
	if err := e.gather(tried); err != nil {
		return err
	}
	un := action.NewUninstall(e.cfg)
	un.IgnoreNotFound, un.DisableHooks = true, true
	un.Timeout = operationTimeout
	_, err = un.Run(e.name)
	return errors.Wrapf(err, "cannot uninstall Helm release %s", e.name)
}

// supersede revisions that Helm still calls deployed. Those that are gone are left out.
func (e *helmEngine) supersede(revisions []int64) error {
	for _, n := range revisions {
		r, err := e.cfg.Releases.Get(e.name, int(n))
		if errors.Is(err, driver.ErrReleaseNotFound) {
			continue
		}
		if err != nil {
			return errors.Wrapf(err, "cannot read revision %d of Helm release %s", n, e.name)
		}
		// As Helm does it: the description goes on saying what was deployed.
		r.Info.Status = helm.StatusSuperseded
		if err := e.cfg.Releases.Update(r); err != nil {
			return errors.Wrapf(err, "cannot mark revision %d of Helm release %s superseded", n, e.name)
		}
	}
	return nil
}

// imageOf is the image that a revision was deployed with.
func (e *helmEngine) imageOf(revision int64) (string, error) {
	r, err := e.cfg.Releases.Get(e.name, int(revision))
	if err != nil {
		return "", errors.Wrapf(err, "cannot read revision %d of Helm release %s", revision, e.name)
	}
	image, _ := r.Config["image"].(string)
	return image, nil
}

// repaired returns the last revision, nil if there is none, after undoing what an operation has left that nobody carries
// on with. The caller knows that there is none of this process; the lease, that there is no other process.
func (e *helmEngine) repaired() (*helm.Release, error) {
	last, err := e.cfg.Releases.Last(e.name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil //nolint:nilnil // Nil is what there is.
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read Helm release %s", e.name)
	}
	switch status := last.Info.Status; {
	case status == helm.StatusUninstalling || status == helm.StatusUninstalled:
		return nil, e.uninstall()
	case status.IsPending():
		// Its record is kept, of an install too: it alone tells what was made.
		last.SetStatus(helm.StatusFailed, "interrupted")
		return last, errors.Wrapf(e.cfg.Releases.Update(last), "cannot mark an operation on Helm release %s that was interrupted", e.name)
	default:
		return last, nil
	}
}

// prepare renders the chart without sending anything, and refuses what may not be deployed before Helm records it.
func (e *helmEngine) prepare(ctx context.Context, d deployment, last *helm.Release) (prepared, error) {
	r, err := e.render(ctx, d, last)
	if err != nil {
		return prepared{}, err
	}
	if r.CRD != "" {
		return prepared{}, refuse("the chart brings the CustomResourceDefinition in %s; an environment's charts may bring none", r.CRD)
	}
	for _, h := range r.Hooks {
		// Tests are run by hand only.
		if !h.Test {
			return prepared{}, refuse("the chart wants a hook, %s %q in %s; an environment's charts may have none", h.Kind, h.Name, h.Path)
		}
	}
	objs, err := r.Unstructured()
	if err != nil {
		return prepared{}, err
	}
	m, err := e.all(objs)
	if err != nil {
		return prepared{}, err
	}
	l := maps.Clone(d.labels)
	l[labelWorkloads] = strconv.Itoa(len(workload.FindAll(m, -1)))
	return prepared{chart: recorded(r.Name, r.Version, r.AppVersion), manifest: m, values: d.values, labels: l, description: d.description}, nil
}

// recorded is a chart as Helm records it.
func recorded(name, version, appVersion string) *chart.Chart {
	return &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, Version: version, AppVersion: appVersion}}
}

// workload is the line with the kind of a Deployment or StatefulSet in what was stamped, whose YAML is written by us.
var workload = regexp.MustCompile(`(?m)^kind: (Deployment|StatefulSet)$`)

func (e *helmEngine) render(ctx context.Context, d deployment, last *helm.Release) (*render.Rendered, error) {
	archive, err := d.chart()
	if err != nil {
		return nil, err
	}
	values, err := json.Marshal(d.values)
	if err != nil {
		return nil, errors.Wrap(err, "cannot write the values")
	}
	j := render.Job{Chart: archive, Values: values, Release: e.name, Namespace: e.namespace, Revision: 1, Capabilities: e.cfg.Capabilities}
	if last != nil {
		j.Revision, j.Upgrade = last.Version+1, true
	}
	r, err := e.renderer.Render(ctx, e.identity.Tenant, j, e.rest)
	if errors.As(err, new(*render.RefusedError)) {
		return nil, &refusedError{err}
	}
	return r, err
}

// set leaves out the labels that are to be dropped: a first revision has none to drop.
func set(labels map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		if v != unset {
			out[k] = v
		}
	}
	return out
}
