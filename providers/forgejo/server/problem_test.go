package server

import (
	"os"
	"slices"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"sigs.k8s.io/yaml"

	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// TestReasonsAreDocumented: who looks up a reason of QueueWatched finds it there, also one that other conditions have.
func TestReasonsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/reasons.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var documented map[string]struct {
		Conditions []string `json:"conditions"`
	}
	if err := yaml.Unmarshal(raw, &documented); err != nil {
		t.Fatal(err)
	}
	all := []xpv2.ConditionReason{
		steading.ReasonPolled, steading.ReasonPendingDecision, steading.ReasonTokenMissing, steading.ReasonAddressRefused, steading.ReasonServerUnreachable,
	}
	for _, r := range reasons {
		all = append(all, r.reason)
	}
	for _, r := range all {
		if !slices.Contains(documented[string(r)].Conditions, string(steading.ConditionQueueWatched)) {
			t.Errorf("docs/reasons.yaml does not have %s as a reason of %s", r, steading.ConditionQueueWatched)
		}
	}
}
