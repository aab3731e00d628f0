package acceptance

import (
	"testing"

	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/harness"
)

var suite harness.Suite

func TestMain(m *testing.M) {
	suite.Main(m, platform.Options{
		Name: "acceptance", Edge: true, ProviderArgs: harness.NoPolling(),
		// The tests live a life in seconds. Crossplane's circuit breaker is there to slow that down.
		CrossplaneArgs: []string{"--circuit-breaker-burst=10000"},
	})
}
