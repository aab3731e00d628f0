//go:build node

package node

import (
	"testing"

	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/power"
)

// TestPowerUsedIsWithinTheTable: what the tests before this one had our accounts do as packages, to which Crossplane's RBAC
// manager gives more, they would have been let do by what cluster/install gives alone.
func TestPowerUsedIsWithinTheTable(t *testing.T) {
	all := power.Requests(t, suite.Plane.AuditLog())
	table := power.ReadTable(t, "../security/testdata/power.yaml")
	everybody := func(string) bool { return true }
	if judged := (power.Used{}).Judge(t, table, platform.Processes(), everybody, all); judged < 100 {
		t.Errorf("%d requests were judged, so this shows nothing", judged)
	} else {
		t.Logf("%d requests are within the table", judged)
	}
}

// TestNobodyIsAdministrator with Crossplane, its RBAC manager and all else installed by charts and packages.
func TestNobodyIsAdministrator(t *testing.T) {
	power.WantNoAdministrator(t, suite.Admin)
	power.WantNoAdministratorUsed(t, power.Requests(t, suite.Plane.AuditLog()))
}
