package render

import (
	"os"
	"testing"
)

// TestMain renders where it is asked to: charts are rendered by the binary that runs.
func TestMain(m *testing.M) {
	ServeIfAsked()
	os.Exit(m.Run())
}
