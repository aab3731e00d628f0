package local

import (
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/storage/driver"
)

// InstallChart installs a chart, or upgrades what was installed, as the administrator, like Helm's own command.
func (p *Plane) InstallChart(ctx context.Context, namespace, name string, c *chart.Chart, values map[string]any) error {
	settings := cli.New()
	settings.KubeConfig = p.Kubeconfig()
	h := &action.Configuration{}
	if err := h.Init(settings.RESTClientGetter(), namespace, "secret", func(string, ...any) {}); err != nil {
		return fmt.Errorf("cannot install chart %s: %w", name, err)
	}
	var err error
	if _, last := h.Releases.Last(name); errors.Is(last, driver.ErrReleaseNotFound) {
		install := action.NewInstall(h)
		install.ReleaseName, install.Namespace, install.CreateNamespace = name, namespace, true
		_, err = install.RunWithContext(ctx, c, values)
	} else {
		upgrade := action.NewUpgrade(h)
		upgrade.Namespace = namespace
		_, err = upgrade.RunWithContext(ctx, name, c, values)
	}
	if err != nil {
		return fmt.Errorf("cannot install chart %s: %w", name, err)
	}
	return nil
}
