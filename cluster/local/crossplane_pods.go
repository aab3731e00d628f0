package local

import (
	"context"
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crossplaneTimeout is how long Crossplane's pods may take to be ready.
const crossplaneTimeout = 5 * time.Minute

// installCrossplane as its users do: by its chart, with the RBAC manager. The chart's version is that of a development build.
func (p *Plane) installCrossplane(ctx context.Context, args []string) error {
	p.progress("installing crossplane by its chart")
	c, err := loader.LoadDir(p.tools.Asset(Crossplane, "cluster/charts/crossplane"))
	if err != nil {
		return fmt.Errorf("cannot load the chart of crossplane: %w", err)
	}
	c.Metadata.Version, c.Metadata.AppVersion = crossplaneVersion[1:], crossplaneVersion[1:]
	// The limits of CPU are the chart's for clusters with more than one thing to do.
	limits := map[string]any{"limits": map[string]any{"cpu": "2"}, "requests": map[string]any{"cpu": "50m"}}
	values := map[string]any{
		"image": map[string]any{"repository": p.images[Crossplane], "ignoreTag": true},
		"args":  toAny(append([]string{maxReconcileRate}, args...)), "resourcesCrossplane": limits, "resourcesRBACManager": limits,
	}
	if err := p.InstallChart(ctx, CrossplaneNamespace, "crossplane", c, values); err != nil {
		return err
	}
	for _, name := range []string{"crossplane", "crossplane-rbac-manager"} {
		err := p.waitFor(ctx, crossplaneTimeout, func(ctx context.Context) (bool, error) {
			return true, p.rolledOut(ctx, "Deployment", client.ObjectKey{Namespace: CrossplaneNamespace, Name: name})
		})
		if err != nil {
			return fmt.Errorf("cannot wait until Deployment %s runs: %w", name, err)
		}
	}
	return nil
}

func toAny(values []string) []any {
	all := make([]any, 0, len(values))
	for _, v := range values {
		all = append(all, v)
	}
	return all
}
