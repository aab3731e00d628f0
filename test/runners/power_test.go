package runners

import (
	"errors"
	"slices"
	"testing"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/power"
)

// TestPowerOfRunnersIsLeast lives the life of a pool and compares what provider-forgejo asked the API server for with what the table
// of test/security lets it: nothing beyond it, and each of the verbs that a life of pods in good order has to use.
func TestPowerOfRunnersIsLeast(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "power")
	w.queue(t, 3, "")
	p := w.pool(2)
	p.Spec.IdleTimeoutSeconds = 5 // A slow machine makes one too many, which would wait for another job.
	suite.Create(t, p)
	w.waitJobs(t)
	w.wait(t, p, "is idle", func(p *steading.RunnerPool) error {
		if p.Status.Live != 0 {
			return errors.New("it has live runners")
		}
		return nil
	})
	suite.Delete(t, p)
	suite.WantGone(t, p)
	w.wantNothing(t)

	wantPower(t, 30)
}

// wantPower expects that provider-forgejo did nothing yet that is beyond the table, and used the verbs that the table has for
// this test, which are as many at least.
func wantPower(t *testing.T, atLeast int) {
	t.Helper()
	table := slices.DeleteFunc(power.ReadTable(t, "../security/testdata/power.yaml"), func(r power.Row) bool { return r.Account != names.ProviderForgejo })
	u := power.Used{}
	if judged := u.Judge(t, table, []string{names.ProviderForgejo}, func(string) bool { return true }, power.Requests(t, suite.Plane.AuditLog())); judged < 100 {
		t.Errorf("%d requests were judged, so this shows nothing", judged)
	}
	asked := 0
	for i, r := range table {
		table[i].Verbs = nil
		for _, x := range r.Rare {
			if x.Test != t.Name() {
				continue
			}
			// The API server asks for the verb bind within the request that makes a binding, and logs nothing of it. Without both
			// bindings no job would have run.
			table[i].Verbs = slices.DeleteFunc(x.Verbs, func(v string) bool { return v == "bind" })
			asked += len(table[i].Verbs)
		}
	}
	if asked < atLeast {
		t.Errorf("the table has %d verbs for this test, so it shows nothing", asked)
	}
	u.Want(t, table)
}
