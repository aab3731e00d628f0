package charts

import (
	"os"
	"testing"

	renderer "github.com/steading-dev/steading/providers/runtime/render"
)

// TestMain renders where it is asked to, as the provider does.
func TestMain(m *testing.M) {
	renderer.ServeIfAsked()
	os.Exit(m.Run())
}
