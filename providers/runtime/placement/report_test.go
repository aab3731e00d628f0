package placement

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/runtime/usage"
)

func TestTheHomeIsToldWhatIsInUse(t *testing.T) {
	w := newWorld(t, homeOf(quotaOf(3), func(s *steading.TenantSpec) { s.Quota.Total = sizeOf("10", "1Ti", "1Ti") }),
		placementOf("a"), placementOf("b", agent, stopped), placementOf("gone"), boundaryOf("gone"), placementOf("plan", dryRun))
	w.reconcile()
	w.delete(placementOf("gone"))
	w.create(placementOf("refused"))
	w.clock.Step(reportEvery)
	w.reconcile()

	o := w.home().Status.AtProvider
	if diff := cmp.Diff(&steading.EnvironmentCounts{Total: 2, Running: 1, Stopped: 1, Refused: 1, TearingDown: 1}, o.Environments); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
	want := steading.UsageOf{Projected: sizeOf("8", "0", "0").CPU, Limit: sizeOf("10", "0", "0").CPU, Free: sizeOf("2", "0", "0").CPU}
	if diff := cmp.Diff(want, o.Usage.CPU); diff != "" {
		t.Errorf("-want, +have:\n%s", diff)
	}
}

func TestFreeIsNeverBelowZero(t *testing.T) {
	w := newWorld(t, homeOf(), placementOf("a"))
	w.reconcile()
	h := w.home()
	h.Spec.ForProvider.Settings.Quota.Total = sizeOf("3", "1Ti", "1Ti")
	if err := w.kube.Update(context.Background(), h); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(reportEvery)
	w.reconcile()
	if c := w.home().Status.AtProvider.Usage.CPU; !c.Free.IsZero() || c.Projected.Value() != 4 || c.Limit.Value() != 3 {
		t.Errorf("cpu %+v", c)
	}
}

func TestTheHomeIsToldAtMostEveryFiveSeconds(t *testing.T) {
	patches := 0
	w := newWorld(t, homeOf(), placementOf("a")).through(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			patches++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	w.reconcile()
	w.create(placementOf("b"))
	w.clock.Step(time.Second)
	if res := w.reconcile(); res.RequeueAfter != 4*time.Second || patches != 1 {
		t.Errorf("result %+v after %d patches", res, patches)
	}
	w.clock.Step(4 * time.Second)
	w.reconcile()
	if n := w.home().Status.AtProvider.Environments.Total; n != 2 || patches != 2 {
		t.Errorf("%d environments after %d patches", n, patches)
	}
	w.clock.Step(time.Minute)
	w.reconcile()
	if patches != 2 {
		t.Error("what did not change was told again")
	}
}

func TestTheHomesOtherFieldsAreLeftAlone(t *testing.T) {
	h := homeOf()
	h.Status.AtProvider.Namespace = "tenant-acme"
	w := newWorld(t, h, placementOf("a"))
	w.reconcile()
	if o := w.home().Status.AtProvider; o.Namespace != "tenant-acme" || o.Environments == nil {
		t.Errorf("status %+v", o)
	}
}

func TestTheHomeShowsTheLastTwentyUsageEvents(t *testing.T) {
	w := newWorld(t, homeOf())
	log := usage.Log{Client: w.kube, Reader: w.kube}
	for i := range 25 {
		e := usage.Entry{
			Identity:   v1alpha1.Identity{Tenant: "acme", Environment: "dev", UID: types.UID("xr-dev")},
			Transition: v1alpha1.TransitionProvisioned, Revision: int64(i), Time: epoch.Add(time.Duration(i) * time.Minute), Version: "1",
		}
		if err := log.Record(context.Background(), e); err != nil {
			t.Fatal(err)
		}
	}
	w.reconcile()
	rs := w.home().Status.AtProvider.RecentUsageEvents
	if len(rs) != 20 || !rs[0].Time.Time.Equal(epoch.Add(24*time.Minute)) || !rs[19].Time.Time.Equal(epoch.Add(5*time.Minute)) {
		t.Errorf("%d records: %+v", len(rs), rs)
	}
}
