package acceptance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/harness"
)

// rivals are created at once, where there is room for one. The quota of the tenant's namespace lets that many in.
const rivals = 10

// A scarcity is what a tenant has room for one environment of.
type scarcity struct {
	quota steading.Quota
	// on is the context that has room for it. Nil: it is not about contexts.
	on *steading.Context
	// edit what asks for it.
	edit func(*steading.EnvironmentSpec)
	// refusal, as a condition, its reason and the numbers it tells.
	condition xpv2.ConditionType
	reason    string
	parts     []string
}

// countOf one, by what only is counted.
func countOf(tenant string) scarcity {
	return scarcity{
		quota:     steading.Quota{MaxEnvironments: new(int32(1))},
		edit:      func(s *steading.EnvironmentSpec) { s.Type = steading.TypeLocalAgent },
		condition: steading.ConditionAdmitted, reason: string(steading.ReasonEnvironmentLimit),
		parts: []string{"tenant " + tenant + " has 1 of at most 1 environments", "spec.quota.maxEnvironments"},
	}
}

// budgetOf one, and a little more.
func budgetOf(tenant string) scarcity {
	return scarcity{
		quota:     steading.Quota{MaxEnvironments: new(int32(20)), Total: steading.MustResources("15", "64Gi", "100Gi")},
		edit:      func(*steading.EnvironmentSpec) {},
		condition: steading.ConditionAdmitted, reason: string(steading.ReasonOverTenantTotal),
		parts: []string{
			"cpu of tenant " + tenant + " would be 16 (8 for this environment and 8 for 1 other", "the budget is 15, 1 too much", "spec.quota.total.cpu",
		},
	}
}

// placesOf a context: one. Of everything else there is enough for all.
func placesOf(tenant string) scarcity {
	c := suite.EdgeContext(tenant, "edge", harness.BySecret("edge-admin"))
	c.Spec.MaxEnvironments = new(int32(1))
	return scarcity{
		quota:     steading.Quota{MaxEnvironments: new(int32(2 * rivals))},
		on:        c,
		edit:      func(s *steading.EnvironmentSpec) { s.ContextRef = &steading.ContextReference{Name: c.Name} },
		condition: steading.ConditionPlaced, reason: string(steading.ReasonContextFull),
		parts: []string{`context "edge" is full: it holds 1 of at most 1 environments`, "spec.maxEnvironments"},
	}
}

// prepare the tenant, and the context if it is about one.
func (s scarcity) prepare(t *testing.T, tenant string) {
	t.Helper()
	suite.NewTenant(t, tenant, steading.TenantSpec{Quota: s.quota})
	if s.on == nil {
		return
	}
	suite.Create(t, harness.TokenSecret(tenant, "edge-admin", suite.EdgeToken(t, tenant+"-admin")), s.on)
	suite.WaitContext(t, s.on, "running", harness.ContextRunning)
}

// putAway the context, while its credential is good.
func (s scarcity) putAway(t *testing.T) {
	t.Helper()
	if s.on != nil {
		suite.Delete(t, s.on)
		suite.WantGone(t, s.on)
	}
}

// TestRoomForOne: of ten environments that are created at once exactly one is admitted, round after round, and nine are told
// by how much they are too many.
func TestRoomForOne(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(tenant string) scarcity{"count": countOf, "budget": budgetOf, "places": placesOf} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tenant := "roomfor" + name
			s := of(tenant)
			s.prepare(t, tenant)
			for round := range rounds {
				es := s.compete(t, tenant, round)
				s.wantOne(t, tenant, es)
				s.clear(t, es)
			}
			s.putAway(t)
		})
	}
}

// TestRoomForOneWhileProvidersDie: it is one as well when the provider is killed while it decides, when it hangs for so long
// that another one takes its lease and then goes on where it stopped, and when two decide all the time.
func TestRoomForOneWhileProvidersDie(t *testing.T) {
	const standby = "provider-standby"
	cases := map[string]struct {
		reason string
		args   []string
		// meanwhile the environments are created.
		meanwhile func(t *testing.T)
	}{
		"killed": {
			reason: "what was granted before it died counts for the one that follows",
			meanwhile: func(t *testing.T) {
				t.Helper()
				if err := suite.Plane.Supervisor.Kill(platform.Provider); err != nil {
					t.Error(err)
				}
			},
		},
		"lostlease": {
			reason: "the one that hung does not know that it lost its lease, and grants what it read room for",
			args:   []string{},
			meanwhile: func(t *testing.T) {
				t.Helper()
				hang(t, platform.Provider)
				hang(t, standby+"-lostlease") // So that the next round begins as this one did.
			},
		},
		"two": {
			reason:    "without a lease only the ledger keeps them apart",
			args:      []string{"--no-leader-elect"},
			meanwhile: func(*testing.T) {},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.args != nil {
				if err := suite.StartStandby(t.Context(), standby+"-"+name, tc.args...); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = suite.Plane.Supervisor.Stop(standby + "-" + name) })
			}
			counted, placed := "dying"+name, "dyingat"+name
			room := map[string]scarcity{counted: countOf(counted), placed: placesOf(placed)}
			for tenant, s := range room {
				s.prepare(t, tenant)
			}
			for round := range dyingRounds {
				var wg sync.WaitGroup
				wg.Go(func() { tc.meanwhile(t) })
				all := map[string][]*steading.Environment{}
				for tenant, s := range room {
					all[tenant] = s.compete(t, tenant, round)
				}
				wg.Wait()
				for tenant, s := range room {
					s.wantOne(t, tenant, all[tenant])
					s.clear(t, all[tenant])
				}
			}
			for _, s := range room {
				s.putAway(t)
			}
		})
	}
}

// hang the provider that leads until the other one does.
func hang(t *testing.T, leader string) {
	t.Helper()
	before, pid := leaseHolder(t), suite.Plane.Supervisor.Pid(leader)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	harness.Eventually(t, "another one takes the lease of "+leader, func(context.Context) error {
		if leaseHolder(t) == before {
			return errors.New("the lease is still held by " + before)
		}
		return nil
	})
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Error(err)
	}
}

// leaseHolder is the identity of the provider's leader.
func leaseHolder(t *testing.T) string {
	t.Helper()
	l := harness.Get(t, &suite, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: platform.Provider}})
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// compete creates the rivals at once.
func (s scarcity) compete(t *testing.T, tenant string, round int) []*steading.Environment {
	t.Helper()
	es := make([]*steading.Environment, rivals)
	errs := make([]error, rivals)
	var wg sync.WaitGroup
	for i := range es {
		es[i] = harness.Environment(tenant, fmt.Sprintf("r%d-%d", round, i))
		s.edit(&es[i].Spec)
		wg.Go(func() { errs[i] = suite.Admin.Create(t.Context(), es[i]) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("cannot create what is to be refused with a reason: %v", err)
	}
	return es
}

// wantOne waits until all are decided on, and expects one grant, in the claims, the Placements and the Ledger.
func (s scarcity) wantOne(t *testing.T, tenant string, es []*steading.Environment) {
	t.Helper()
	admitted := 0
	for _, e := range es {
		suite.WaitFor(t, e, "decided on", func(e *steading.Environment) bool {
			return isAdmitted(e) || refusedBy(s.condition, s.reason, s.parts...)(e) && e.Status.Phase == steading.EnvironmentPending
		})
		if isAdmitted(e) {
			admitted++
		}
	}
	granted := 0
	placements := &runtimev1.PlacementList{}
	if err := suite.Admin.List(t.Context(), placements, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelTenant: tenant}); err != nil {
		t.Fatal(err)
	}
	for i := range placements.Items {
		if placements.Items[i].Status.AtProvider.Grant != nil {
			granted++
		}
	}
	ledger := harness.Get(t, &suite, &runtimev1.Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: names.Home(tenant)}})
	if admitted != 1 || granted != 1 || len(ledger.Entries) != 1 {
		t.Errorf("of %d environments %d are admitted, %d placements have a grant, %d are in the ledger; want one each", len(es), admitted, granted, len(ledger.Entries))
	}
}

func isAdmitted(e *steading.Environment) bool {
	status, _, _ := harness.Condition(e, string(steading.ConditionAdmitted))
	return status == "True"
}

// clear the field for the next round. The refused ones go first, so that none of them is admitted.
func (s scarcity) clear(t *testing.T, es []*steading.Environment) {
	t.Helper()
	slices.SortStableFunc(es, func(a, b *steading.Environment) int {
		if isAdmitted(a) == isAdmitted(b) {
			return 0
		} else if isAdmitted(a) {
			return 1
		}
		return -1
	})
	for _, e := range es[:rivals-1] {
		suite.Delete(t, e)
	}
	for _, e := range es[:rivals-1] {
		suite.WantGone(t, e)
	}
	suite.Delete(t, es[rivals-1])
	suite.WantGone(t, es[rivals-1])
}

// TestQuotaRaised admits what was refused without anybody touching it, as far as the new quota goes, and tells the others the
// new numbers.
func TestQuotaRaised(t *testing.T) {
	t.Parallel()
	s := countOf("raised")
	x := suite.NewTenant(t, "raised", steading.TenantSpec{Quota: s.quota})
	es := s.compete(t, "raised", 0)
	s.wantOne(t, "raised", es)
	generations := map[string]int64{}
	for _, e := range es {
		generations[e.Name] = e.Generation
	}

	harness.Change(t, &suite, x, func(x *steading.Tenant) { x.Spec.Quota.MaxEnvironments = new(int32(4)) })
	admitted := 0
	for _, e := range es {
		suite.WaitFor(t, e, "decided on again", func(e *steading.Environment) bool {
			return isAdmitted(e) || refused(s.reason, "tenant raised has 4 of at most 4 environments")(e)
		})
		if isAdmitted(e) {
			admitted++
		}
	}
	if admitted != 4 {
		t.Errorf("%d environments are admitted, want 4", admitted)
	}

	harness.Change(t, &suite, x, func(x *steading.Tenant) { x.Spec.Quota.MaxEnvironments = new(int32(rivals)) })
	for _, e := range es {
		suite.WaitFor(t, e, "ready", harness.Ready)
		if e.Generation != generations[e.Name] {
			t.Errorf("environment %s was touched: its generation was %d and is %d", e.Name, generations[e.Name], e.Generation)
		}
	}
	waitTenant(t, x, "with ten environments", func(x *steading.Tenant) bool {
		n := x.Status.Environments
		return n != nil && n.Total == rivals && n.Refused == 0
	})
}

// TestQuotaLowered below what is in use stops nothing that runs and keeps it from no new version, but refuses what comes
// next: another environment, or more for this one.
func TestQuotaLowered(t *testing.T) {
	t.Parallel()
	x := suite.NewTenant(t, "lowered", steading.TenantSpec{})
	e, r := harness.Environment("lowered", "dev"), harness.Environment("lowered", "laptop")
	r.Spec.Type = steading.TypeLocalAgent
	for _, e := range []*steading.Environment{e, r} {
		suite.Create(t, e)
		suite.WaitFor(t, e, "ready", harness.Ready)
	}
	pod := podsIn(t, "lowered-dev")[0].UID

	harness.Change(t, &suite, x, func(x *steading.Tenant) {
		x.Spec.Quota = steading.Quota{MaxEnvironments: new(int32(1)), Total: steading.MustResources("4", "16Gi", "2Gi"), PerEnvironment: steading.MustResources("4", "16Gi", "2Gi")}
	})
	next := harness.Environment("lowered", "next")
	next.Spec.Type = steading.TypeLocalAgent
	suite.Create(t, next)
	suite.WaitFor(t, next, "refused", refused(steading.ReasonEnvironmentLimit, "has 2 of at most 1 environments"))

	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Size = steading.MustResources("9", "20Gi", "40Gi") })
	suite.WaitFor(t, e, "refused a larger size", refused(steading.ReasonOverEnvironmentCap, "cpu 9 is over the 4 that one environment of tenant lowered may have, 5 too much"))
	if e.Status.Phase != steading.EnvironmentRunning || e.Status.DeployedVersion != "1.4.2" || e.Status.Caps == nil || e.Status.Caps.CPU.String() != "8" {
		t.Errorf("what was refused a larger size: %s, caps %+v", harness.Describe(e), e.Status.Caps)
	}
	if pods := podsIn(t, "lowered-dev"); len(pods) != 1 || pods[0].UID != pod || !podReady(pods[0]) {
		t.Errorf("its pod was touched")
	}
	harness.Change(t, &suite, e, func(e *steading.Environment) { e.Spec.Size, e.Spec.Version = e.Status.Caps, "1.4.3" })
	suite.WaitFor(t, e, "at a new version", func(e *steading.Environment) bool {
		return harness.Ready(e) && e.Status.DeployedVersion == "1.4.3" && e.Status.Caps.CPU.String() == "8"
	})
}
