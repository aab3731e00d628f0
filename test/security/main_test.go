package security

import (
	"testing"

	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/harness"
)

var suite harness.Suite

func TestMain(m *testing.M) {
	suite.Main(m, platform.Options{Name: "security", Edge: true, ProviderArgs: harness.NoPolling()})
}
