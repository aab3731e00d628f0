//go:build node

package node

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/harness"
)

var suite harness.Suite

// options of the suite's platform.
var options = platform.Options{
	Name: "node", Node: local.NodeContainerd, ProviderArgs: harness.NoPolling(),
	// A life takes seconds here. Crossplane's circuit breaker would take that for a composite that never settles.
	CrossplaneArgs: []string{"--circuit-breaker-burst=10000"},
}

// TestMain runs the suite where a node can run. Elsewhere it says why not, which in CI is a failure.
func TestMain(m *testing.M) {
	if err := local.CanRunNode(context.Background(), func(line string) { fmt.Println(line) }); err != nil {
		fmt.Println("suite node is skipped:", err)
		if os.Getenv("CI") == "true" {
			os.Exit(1)
		}
		return
	}
	suite.Main(m, options)
}
