package release

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// versionOf what is deployed: the runtime's, or that of the component's chart.
func versionOf(p v1alpha1.ReleaseParameters) string {
	if p.Component != nil {
		return p.Chart.Version
	}
	return p.Version
}

// componentRequest is what makes a component's request: what the spec says, and which versions of the objects that values
// come from. Not what is in them, which would show in the digest.
type componentRequest struct {
	UID       string          `json:"uid"`
	Component string          `json:"component"`
	Chart     string          `json:"chart"`
	Power     steading.Power  `json:"power"`
	Values    json.RawMessage `json:"values,omitempty"`
	From      []string        `json:"from,omitempty"`
}

func componentRequestOf(p v1alpha1.ReleaseParameters, from []string) componentRequest {
	r := componentRequest{UID: string(p.Identity.UID), Component: p.Component.Name, Chart: p.Chart.Digest, Power: p.Power, From: from}
	if p.Values != nil {
		r.Values = p.Values.Raw
	}
	return r
}

// deployComponent with the values of the claim over those that it refers to.
func (e *external) deployComponent(ctx context.Context, p v1alpha1.ReleaseParameters, want string) error {
	merged, secret, err := e.values.read(ctx, p)
	if err != nil {
		return err
	}
	if p.Values != nil && len(p.Values.Raw) > 0 {
		given := map[string]any{}
		if err := json.Unmarshal(p.Values.Raw, &given); err != nil {
			return errors.Wrap(err, "cannot read values")
		}
		merged = merge(given, merged)
	}
	h, err := e.helm.engine(ctx, p)
	if err != nil {
		return err
	}
	l := labels(p.Identity)
	l[labelRequest], l[labelFailed], l[labelPower] = want, unset, string(p.Power)
	return secret.redact(h.deploy(ctx, deployment{
		chart: e.source.chart(ctx, p), values: merged, labels: l,
		description: fmt.Sprintf("chart version %s, %s", p.Chart.Version, p.Power),
	}))
}

// merge values over others, table by table. A null stays: it takes away a default of the chart. Helm's own merging logs
// values that do not fit.
func merge(over, under map[string]any) map[string]any {
	merged := maps.Clone(under)
	if merged == nil {
		merged = map[string]any{}
	}
	for k, v := range over {
		a, ok1 := v.(map[string]any)
		b, ok2 := merged[k].(map[string]any)
		if ok1 && ok2 {
			merged[k] = merge(a, b)
			continue
		}
		merged[k] = v
	}
	return merged
}

// stop scales what runs to zero and suspends what would be run. The runtime's chart does so itself.
func stop(obj *unstructured.Unstructured) error {
	var err error
	switch obj.GroupVersionKind().GroupKind().String() {
	case "Deployment.apps", "StatefulSet.apps":
		err = unstructured.SetNestedField(obj.Object, int64(0), "spec", "replicas")
	case "CronJob.batch", "Job.batch":
		err = unstructured.SetNestedField(obj.Object, true, "spec", "suspend")
	}
	if err != nil {
		return refuse("cannot stop %s: its spec is malformed: %w", describe(obj), err)
	}
	return nil
}
