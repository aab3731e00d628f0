package release

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/kube"
	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/client-go/rest"
)

// operationTimeout bounds one Helm operation.
const operationTimeout = 5 * time.Minute

func init() { kube.ManagedFieldsManager = "steading-helm" }

// A helmEngine drives Helm for one release.
type helmEngine struct {
	cfg *action.Configuration
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
	// chart returns the chart, each time another copy: rendering changes it.
	chart  func() (*chart.Chart, error)
	values map[string]any
	labels map[string]string
	// description goes into Helm's record.
	description string
}

// deploy installs or upgrades, after repairing what an operation that died has left.
func (e *helmEngine) deploy(d deployment) error {
	last, err := e.repaired()
	if err != nil {
		return err
	}
	workloads, err := e.check(d, last)
	if err != nil {
		return err
	}
	d.labels = maps.Clone(d.labels)
	d.labels[labelWorkloads] = strconv.Itoa(workloads)
	ch, err := d.chart()
	if err != nil {
		return err
	}
	if last == nil {
		return e.install(ch, d)
	}
	return e.upgrade(ch, d)
}

// install and upgrade take no context. Helm would abandon what it does rather than end it, and when a context ends just
// after an upgrade did, Helm may still mark the upgrade failed. Each of its requests has a timeout of its own.
func (e *helmEngine) install(ch *chart.Chart, d deployment) error {
	in := action.NewInstall(e.cfg)
	in.ReleaseName, in.Namespace = e.name, e.namespace
	in.Description = d.description
	in.Labels = set(d.labels)
	in.PostRenderer = e.stamp
	in.Timeout = operationTimeout
	in.DisableHooks, in.SkipCRDs, in.DisableOpenAPIValidation = true, true, true
	_, err := in.Run(ch, d.values)
	return errors.Wrapf(e.witness.judge(err), "cannot install Helm release %s", e.name)
}

func (e *helmEngine) upgrade(ch *chart.Chart, d deployment) error {
	from, err := e.upgradedFrom()
	if err != nil {
		return err
	}
	if err := e.disown(from); err != nil {
		return err
	}
	up := action.NewUpgrade(e.cfg)
	up.Namespace = e.namespace
	up.Description = d.description
	up.Labels = d.labels
	up.PostRenderer = e.stamp
	up.Timeout = operationTimeout
	up.MaxHistory = historyMax
	up.ResetValues = true
	up.DisableHooks, up.SkipCRDs, up.DisableOpenAPIValidation = true, true, true
	_, err = up.Run(e.name, ch, d.values)
	return errors.Wrapf(e.witness.judge(err), "cannot upgrade Helm release %s", e.name)
}

// upgradedFrom is the revision that Helm compares an upgrade with: the one that is deployed, or the last if none ever was.
func (e *helmEngine) upgradedFrom() (*helm.Release, error) {
	from, err := e.cfg.Releases.Deployed(e.name)
	if errors.Is(err, driver.ErrNoDeployedReleases) {
		from, err = e.cfg.Releases.Last(e.name)
	}
	return from, errors.Wrapf(err, "cannot read Helm release %s", e.name)
}

// rollback deploys what an earlier revision did. It is an upgrade, so that it goes through the same checks and its record
// tells what was rolled back.
func (e *helmEngine) rollback(to int64, labels map[string]string, description string) error {
	if _, err := e.repaired(); err != nil {
		return err
	}
	old, err := e.cfg.Releases.Get(e.name, int(to))
	if err != nil {
		return errors.Wrapf(err, "cannot read revision %d of Helm release %s", to, e.name)
	}
	return e.upgrade(old.Chart, deployment{values: old.Config, labels: labels, description: description})
}

// uninstall takes the release down, and nothing of another's. One that does not exist is down.
func (e *helmEngine) uninstall() error {
	last, err := e.cfg.Releases.Last(e.name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot read Helm release %s", e.name)
	}
	if err := e.disown(last); err != nil {
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
	case status.IsPending() && last.Version == 1:
		// Nothing to go back to. What was made already carries the release's name and is taken over by the install.
		_, err := e.cfg.Releases.Delete(e.name, last.Version)
		return nil, errors.Wrapf(err, "cannot drop the record of an install of Helm release %s that was interrupted", e.name)
	case status.IsPending():
		last.SetStatus(helm.StatusFailed, "interrupted")
		return last, errors.Wrapf(e.cfg.Releases.Update(last), "cannot mark an upgrade of Helm release %s that was interrupted", e.name)
	default:
		return last, nil
	}
}

// check renders the chart once without sending anything, and refuses what may not be deployed before Helm records it. It
// returns how many workloads there will be.
func (e *helmEngine) check(d deployment, last *helm.Release) (workloads int, err error) {
	ch, err := d.chart()
	if err != nil {
		return 0, err
	}
	if crds := ch.CRDObjects(); len(crds) > 0 {
		return 0, refuse("the chart brings the CustomResourceDefinition in %s; an environment's charts may bring none", crds[0].Filename)
	}
	hooks, manifests, err := e.render(ch, d.values, last)
	if err != nil {
		return 0, err
	}
	for _, h := range hooks {
		// Tests are run by hand only.
		if !slices.Equal(h.Events, []helm.HookEvent{helm.HookTest}) {
			return 0, refuse("the chart wants a hook, %s %q in %s; an environment's charts may have none", h.Kind, h.Name, h.Path)
		}
	}
	stamped, err := e.Run(manifests)
	if err != nil {
		return 0, err
	}
	return len(workload.FindAll(stamped.Bytes(), -1)), nil
}

// workload is the line with the kind of a Deployment or StatefulSet in what was stamped, whose YAML is written by us.
var workload = regexp.MustCompile(`(?m)^kind: (Deployment|StatefulSet)$`)

func (e *helmEngine) render(ch *chart.Chart, values map[string]any, last *helm.Release) ([]*helm.Hook, *bytes.Buffer, error) {
	if err := chartutil.ProcessDependenciesWithMerge(ch, values); err != nil {
		return nil, nil, refuse("cannot work out the chart's dependencies: %w", err)
	}
	caps := e.cfg.Capabilities
	if v := ch.Metadata.KubeVersion; v != "" && !chartutil.IsCompatibleRange(v, caps.KubeVersion.String()) {
		return nil, nil, refuse("the chart wants Kubernetes %s and the cluster is %s", v, caps.KubeVersion.String())
	}
	o := chartutil.ReleaseOptions{Name: e.name, Namespace: e.namespace, Revision: 1, IsInstall: last == nil, IsUpgrade: last != nil}
	if last != nil {
		o.Revision = last.Version + 1
	}
	v, err := chartutil.ToRenderValues(ch, values, o, caps)
	if err != nil {
		return nil, nil, refuse("the chart refuses its values: %w", err)
	}
	templates := engine.Engine{}
	if e.rest != nil {
		templates = engine.New(e.rest)
	}
	files, err := templates.Render(ch, v)
	if err != nil {
		return nil, nil, refuse("the chart does not render: %w", err)
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, nil, refuse("the chart renders what is not YAML: %w", err)
	}
	all := &bytes.Buffer{}
	for _, m := range manifests {
		fmt.Fprintf(all, "---\n%s\n", m.Content)
	}
	return hooks, all, nil
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
