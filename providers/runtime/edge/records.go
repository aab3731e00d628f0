package edge

import (
	"context"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lookAtRecords compares the DNS records that are asked for with what should be, and says whether external-dns took them up.
// Whether it got them into the zone it tells nobody but its log.
func (e *external) lookAtRecords(ctx context.Context, p v1alpha1.EdgeParameters, services []v1alpha1.ExposedService) ([]change, *problem, error) {
	installed, err := e.operators.Installed(ctx, dnsEndpointKind)
	if err != nil {
		return nil, nil, err
	}
	if !installed {
		return nil, problemf(steading.ReasonOperatorMissing,
			"external-dns is not installed on the control plane (kind DNSEndpoint of externaldns.k8s.io is not served), so the hosts have no names: the operator installs it, with its source crd"), nil
	}
	want := dnsEndpoint(p, services)
	have, exists, err := find(ctx, e.system, want)
	if err != nil {
		return nil, nil, err
	}
	if exists {
		if err := e.ours(ctx, have, p); err != nil {
			pr, err := asProblem(err)
			return nil, pr, err
		}
	}
	switch {
	case len(services) == 0 && exists:
		return []change{{as: e.control, have: have}}, nil, nil
	case len(services) == 0:
		return nil, nil, nil
	case !exists:
		return []change{{as: e.control, want: want}}, exposing, nil
	case differs(want, have):
		return []change{{as: e.control, want: want, have: have}}, exposing, nil
	}
	if seen, _, _ := unstructured.NestedInt64(have.Object, "status", "observedGeneration"); seen != have.GetGeneration() {
		if e.fresh(ctx, have) {
			return nil, exposing, nil
		}
		return nil, problemf(steading.ReasonExposing, "external-dns has not taken up %s yet: if this stays, it does not run, or does not watch namespace %s with its source crd", called(have), names.EdgeNamespace), nil
	}
	return nil, nil, nil
}
