package release

import (
	"os"
	"testing"

	"github.com/steading-dev/steading/providers/runtime/render"
)

// TestMain renders where it is asked to: charts are rendered by the binary that runs.
func TestMain(m *testing.M) {
	render.ServeIfAsked()
	os.Exit(m.Run())
}
