package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	xppkgv1beta1 "github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	helm "helm.sh/helm/v3/pkg/registry"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/package/build"
)

// privateCA is the ConfigMap with the CA of registries.
const privateCA = "private-ca"

// installChart of what packages cannot carry, from the registry.
func (p *Platform) installChart(ctx context.Context, a build.Artifact) error {
	p.say("installing cluster/install by its chart")
	c, err := pullChart(a.Tagged())
	if err != nil {
		return err
	}
	values, err := p.chartValues(ctx)
	if err != nil {
		return err
	}
	if err := p.Plane.InstallChart(ctx, local.CrossplaneNamespace, "steading", c, values); err != nil {
		return err
	}
	for _, process := range Processes() {
		args := p.options.ProviderArgs
		if process == Function {
			args = p.options.FunctionArgs
		}
		if err := p.runWith(ctx, process, args); err != nil {
			return err
		}
	}
	return nil
}

// chartValues are those that the options ask for.
func (p *Platform) chartValues(ctx context.Context) (map[string]any, error) {
	if len(p.options.RegistryCA) == 0 {
		return map[string]any{}, nil
	}
	bundle := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: local.CrossplaneNamespace, Name: privateCA}, Data: map[string]string{"ca.crt": string(p.options.RegistryCA)},
	}
	if err := p.Plane.Client().Create(ctx, bundle); err != nil && !kerrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("cannot write the registries' CA: %w", err)
	}
	return map[string]any{"runtimes": map[string]any{Provider: map[string]any{"caBundle": privateCA}}}, nil
}

func pullChart(ref string) (*chart.Chart, error) {
	puller, err := helm.NewClient(helm.ClientOptPlainHTTP())
	if err != nil {
		return nil, fmt.Errorf("cannot pull chart %s: %w", ref, err)
	}
	pulled, err := puller.Pull(ref)
	if err != nil {
		return nil, fmt.Errorf("cannot pull chart %s: %w", ref, err)
	}
	c, err := loader.LoadArchive(bytes.NewReader(pulled.Chart.Data))
	if err != nil {
		return nil, fmt.Errorf("cannot read chart %s: %w", ref, err)
	}
	return c, nil
}

// runWith gives a process arguments that the chart has no value for. Crossplane reads them when it installs the package.
func (p *Platform) runWith(ctx context.Context, process string, args []string) error {
	if len(args) == 0 {
		return nil
	}
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/deploymentTemplate/spec/template/spec/containers/0/args", "value": args}})
	if err != nil {
		return err
	}
	config := &xppkgv1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: process}}
	if err := p.Plane.Client().Patch(ctx, config, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("cannot give %s its arguments: %w", process, err)
	}
	return nil
}
