package runners

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/fakes/runnernode"
	"github.com/steading-dev/steading/test/harness"
)

var suite harness.Suite

func TestMain(m *testing.M) {
	suite.Main(m, platform.Options{
		Name: "runners", ProviderArgs: harness.NoPolling(),
		// Informers list and watch, so that both verbs are seen to be used.
		ProviderEnv: []string{"KUBE_FEATURE_WatchListClient=false"},
		// The tests live a life in seconds. Crossplane's circuit breaker is there to slow that down.
		CrossplaneArgs: []string{"--circuit-breaker-burst=10000"},
	})
}

// startNode that plays runners, quickly, for as long as the test binary runs. Each test starts it, and the first does.
var startNode = sync.OnceValues(func() (*runnernode.Node, error) {
	return runnernode.Start(context.Background(), suite.Plane.Config(), runnernode.Options{FetchInterval: 200 * time.Millisecond, ReportInterval: 200 * time.Millisecond})
})
