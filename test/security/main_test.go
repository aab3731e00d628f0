package security

import (
	"testing"

	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/harness"
)

var suite harness.Suite

func TestMain(m *testing.M) {
	suite.Main(m, platform.Options{
		Name: "security", Edge: true, ProviderArgs: harness.NoPolling(),
		// Informers list and watch, as they do with API servers before 1.34 and whenever one does not stream its lists, so
		// that both verbs are seen to be used.
		ProviderEnv: []string{"KUBE_FEATURE_WatchListClient=false"},
		// A life takes seconds here. Crossplane's circuit breaker would take that for a composite that never settles.
		CrossplaneArgs: []string{"--circuit-breaker-burst=10000"},
	})
}
