package release

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/address"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/target"
)

// TestLife deploys, upgrades, stops and starts, and counts what is recorded.
func TestLife(t *testing.T) {
	w := newWorld(t)
	w.runs(nil)
	w.settle()
	if st := w.mg.Status.AtProvider; st.State != v1alpha1.ReleaseDeployed || st.Deployed == nil || st.Deployed.Version != "1" || st.Image == nil || st.Image.Ref != "r/devops:1" || !kit.IsReady(w.mg) {
		t.Fatalf("got %+v, want it deployed and ready", st)
	}

	w.want(parameters("2"))
	w.settle()
	w.want(parameters("2", func(p *v1alpha1.ReleaseParameters) { p.Power = steading.PowerStopped }))
	w.runs(nil)
	w.settle()
	if st := w.mg.Status.AtProvider; st.Deployed.Power != steading.PowerStopped || !kit.IsReady(w.mg) {
		t.Fatalf("got %+v, want it stopped and ready", st)
	}
	w.want(parameters("2"))
	w.runs(nil)
	w.settle()
	// Once more, as a process would that died before it could write the status.
	w.mg.Status.AtProvider.Deployed.Power, w.mg.Status.AtProvider.Deployed.Revision = steading.PowerStopped, 3
	w.restart()
	w.settle()

	want := []string{"Provisioned 1", "Provisioned 2", "Started 2", "Stopped 2"}
	if diff := cmp.Diff(want, w.transitions()); diff != "" {
		t.Errorf("each transition once: -want +got\n%s", diff)
	}
	if w.asked != 2 {
		t.Errorf("an image was asked after %d times, want once a version", w.asked)
	}
}

// reinstalled has the namespace deleted behind our back, with Helm's records, which are counted from 1 again.
func (w *world) reinstalled() {
	w.t.Helper()
	must(w.t, w.helm.uninstall())
	w.made = w.made.Add(time.Hour)
}

// TestUsageAfterAReinstall is recorded though revisions of the same numbers had the same transitions.
func TestUsageAfterAReinstall(t *testing.T) {
	w := newWorld(t)
	stopped := parameters("1", func(p *v1alpha1.ReleaseParameters) { p.Power = steading.PowerStopped })
	for _, p := range []v1alpha1.ReleaseParameters{parameters("1"), stopped, parameters("1")} {
		w.want(p)
		w.runs(nil)
		w.settle()
	}
	w.reinstalled()
	w.settle()
	w.want(stopped)
	w.runs(nil)
	w.settle()
	if diff := cmp.Diff([]string{"Provisioned 1", "Started 1", "Stopped 1", "Stopped 1"}, w.transitions()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestReinstallOfAnotherVersion is not taken for the revision of that number that served before.
func TestReinstallOfAnotherVersion(t *testing.T) {
	w := newWorld(t)
	w.runs(nil)
	w.settle()
	w.reinstalled()
	w.want(parameters("2"))
	w.settle()
	if st := w.mg.Status.AtProvider; st.Deployed.Version != "2" || st.Revision != 1 || !kit.IsReady(w.mg) {
		t.Errorf("got %+v", st.Deployed)
	}
	if diff := cmp.Diff([]string{"Provisioned 1", "Provisioned 2"}, w.transitions()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestOneRevisionIsDeployed where Helm could not write, after an upgrade, that the revision before is superseded.
func TestOneRevisionIsDeployed(t *testing.T) {
	w := newWorld(t)
	w.runs(nil)
	w.settle()
	w.want(parameters("2"))
	w.settle()
	first, err := w.helm.cfg.Releases.Get(w.helm.name, 1)
	if err != nil {
		t.Fatal(err)
	}
	first.Info.Status = helm.StatusDeployed
	if err := w.helm.cfg.Releases.Update(first); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if st := w.mg.Status.AtProvider; st.State != v1alpha1.ReleaseDeployed || !kit.IsReady(w.mg) {
		t.Errorf("got %+v, want it to go on serving", st)
	}
	w.settle()
	if diff := cmp.Diff([]string{"1 superseded " + one, "2 deployed " + two}, w.helm.records(t)); diff != "" {
		t.Error(diff)
	}
}

// TestWaitsForItsBoundary: the namespace alone is not enough, until its quota is counted.
func TestWaitsForItsBoundary(t *testing.T) {
	b := boundaryThatStands()
	b.Status.Conditions = nil
	w := newWorld(t, b)
	w.settle()
	if st := w.mg.Status.AtProvider; st.State != v1alpha1.ReleaseDeploying || st.Reason != string(steading.ReasonWaitingForBoundary) || len(w.helm.records(t)) > 0 {
		t.Fatalf("got %+v, %d records of Helm, want it to wait", st, len(w.helm.records(t)))
	}
	kit.MarkReady(b)
	must(t, w.Update(context.Background(), b))
	w.runs(nil)
	w.settle()
	if st := w.mg.Status.AtProvider; st.State != v1alpha1.ReleaseDeployed {
		t.Fatalf("got %+v, want it deployed", st)
	}
	b.Status.Conditions = nil
	must(t, w.Update(context.Background(), b))
	w.want(parameters("2"))
	w.runs(nil)
	w.settle()
	if st := w.mg.Status.AtProvider; st.Deployed.Version != "2" {
		t.Fatalf("got %+v: what was deployed once waits for nothing", st)
	}
}

func TestRollsBackWhatDoesNotRollOut(t *testing.T) {
	w := newWorld(t)
	w.runs(nil)
	w.settle()
	w.want(parameters("2"))
	pull := waitingFor("ErrImagePull", "r/devops:2: not found", nil)
	w.pass()
	<-w.wake
	w.runs(&pull)
	w.pass()
	if st := w.mg.Status.AtProvider; st.State != v1alpha1.ReleaseFailed || st.Reason != string(steading.ReasonImagePull) || !strings.Contains(st.Message, "not found") || kit.IsReady(w.mg) {
		t.Fatalf("got %+v, want the pod's own reason at once", st)
	}
	w.clock.Step(2 * time.Minute)
	w.pass()
	<-w.wake
	w.runs(nil)
	w.settle()
	st := w.mg.Status.AtProvider
	if st.State != v1alpha1.ReleaseRolledBack || st.FailedRequest != digest(parameters("2")) || st.Deployed.Version != "1" || !strings.Contains(st.Message, "rolled back to version 1: ImagePull") {
		t.Fatalf("got %+v, want it rolled back and said so", st)
	}
	before := w.helm.records(t)
	w.restart()
	w.settle()
	if diff := cmp.Diff(before, w.helm.records(t)); diff != "" {
		t.Errorf("the request that failed is not tried again: -want +got\n%s", diff)
	}
	w.want(parameters("3"))
	w.settle()
	if st := w.mg.Status.AtProvider; st.State != v1alpha1.ReleaseDeployed || st.FailedRequest != "" || st.Deployed.Version != "3" {
		t.Errorf("got %+v, want another request tried", st)
	}
	if diff := cmp.Diff([]string{"Provisioned 1", "Provisioned 3"}, w.transitions()); diff != "" {
		t.Errorf("what never served is not usage: -want +got\n%s", diff)
	}
}

func TestChartRefusedLeavesWhatServes(t *testing.T) {
	w := newWorld(t)
	w.runs(nil)
	w.settle()
	w.template = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: root}\n"
	w.want(parameters("2"))
	w.settle()
	st := w.mg.Status.AtProvider
	if st.State != v1alpha1.ReleaseRolledBack || st.Reason != string(steading.ReasonChartRefused) || st.Deployed.Version != "1" || !strings.Contains(st.Message, `ClusterRole "root"`) {
		t.Errorf("got %+v", st)
	}
	if diff := cmp.Diff([]string{"1 deployed " + one}, w.helm.records(t)); diff != "" {
		t.Error(diff)
	}
}

func TestChartThatCannotBePulledIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.chartErr = errors.New("the registry is down")
	w.settle()
	if st := w.mg.Status.AtProvider; st.State == v1alpha1.ReleaseDeployed || !strings.Contains(st.Message, "the registry is down") {
		t.Fatalf("got %+v", st)
	}
	w.chartErr = nil
	w.settle()
	if len(w.helm.records(t)) > 0 {
		t.Fatal("it was tried again at once")
	}
	w.clock.Step(firstRetry)
	w.settle()
	if st := w.mg.Status.AtProvider; st.State != v1alpha1.ReleaseDeployed {
		t.Errorf("got %+v, want it deployed", st)
	}
}

func TestForeignReleaseIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	must(t, w.helm.cfg.Releases.Create(&helm.Release{Name: "acme-devops", Namespace: "acme-dev", Version: 1, Info: &helm.Info{Status: helm.StatusDeployed}, Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "x"}}}))
	w.settle()
	if st := w.mg.Status.AtProvider; st.State != v1alpha1.ReleaseFailed || st.Reason != string(steading.ReasonForeignRelease) {
		t.Errorf("got %+v, want it refused", st)
	}
	w.mg.DeletionTimestamp = &metav1.Time{Time: now}
	if obs, err := w.e.Observe(context.Background(), w.mg); err != nil || obs.ResourceExists {
		t.Errorf("got %+v, %v, want it gone without touching the release", obs, err)
	}
	if got := w.helm.records(t); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestImageIsKnownAfterARestart(t *testing.T) {
	w := newWorld(t)
	w.image = steading.ChosenImage{Choice: steading.ImageCanonical, Reason: imageNoRegistry}
	w.settle()
	w.mg.Status = v1alpha1.ReleaseStatus{}
	w.restart()
	w.settle()
	want := &steading.ChosenImage{Ref: "r/devops:1", Choice: steading.ImageCanonical, Reason: imageNoRegistry}
	if diff := cmp.Diff(want, w.mg.Status.AtProvider.Image); diff != "" {
		t.Errorf("it is in Helm's record: -want +got\n%s", diff)
	}
	if w.asked != 1 {
		t.Errorf("the registry was asked %d times", w.asked)
	}
}

// uninstalled runs a deletion to its end and returns how many passes it took.
func (w *world) uninstalled() bool {
	w.t.Helper()
	ctx := context.Background()
	for range 8 {
		w.e.verdict = verdict{}
		obs, err := w.e.Observe(ctx, w.mg)
		if err != nil {
			w.t.Fatal(err)
		}
		if !obs.ResourceExists {
			return true
		}
		if _, err := w.e.Delete(ctx, w.mg); err != nil {
			w.t.Fatal(err)
		}
		if op := w.e.operations.of(keyOf(w.mg)); op == nil || !op.running && len(w.wake) == 0 {
			return false
		}
		<-w.wake
	}
	return false
}

func TestDeletion(t *testing.T) {
	w := newWorld(t)
	w.settle()
	w.mg.DeletionTimestamp = &metav1.Time{Time: now}
	if !w.uninstalled() {
		t.Fatalf("got %+v, want it gone", w.mg.Status)
	}
	if got := w.helm.records(t); len(got) > 0 {
		t.Errorf("got records %v", got)
	}
	if w.e.operations.of(keyOf(w.mg)) != nil {
		t.Error("what is gone is forgotten")
	}
}

// TestARefusedAddressIsSaid: a cluster whose address is refused may well answer, and the Release says what is in the way.
func TestARefusedAddressIsSaid(t *testing.T) {
	w := newWorld(t)
	w.mg.DeletionTimestamp = &metav1.Time{Time: now}
	err := &target.UnreachableError{Context: "acme-edge", Err: address.Policy{}.Check(netip.MustParseAddr("127.0.0.1"))}
	if _, have := (unreached{w.e, err}).Observe(t.Context(), w.mg); !errors.Is(have, err) {
		t.Errorf("got %v", have)
	}
	c := w.mg.GetCondition(steading.ConditionDeletionBlocked)
	if c.Reason != steading.ReasonAddressRefused || !strings.Contains(c.Message, "127.0.0.1 is a loopback address") {
		t.Errorf("it says %+v", c)
	}
}

// TestDeletionWaitsForTheEdge: no name is to point at a service that is gone.
func TestDeletionWaitsForTheEdge(t *testing.T) {
	e := &v1alpha1.Edge{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-dev", Labels: map[string]string{names.LabelComposite: string(id.UID)}}}
	w := newWorld(t, e)
	w.settle()
	w.mg.DeletionTimestamp = &metav1.Time{Time: now}
	obs, err := w.e.Observe(context.Background(), w.mg)
	if err != nil || !obs.ResourceExists || w.e.verdict.uninstall || w.mg.Status.AtProvider.Message != "waiting for Edge acme-dev" {
		t.Fatalf("got %+v, %v, %+v", obs, err, w.mg.Status.AtProvider)
	}
	must(t, w.Delete(context.Background(), e))
	if !w.uninstalled() {
		t.Fatalf("got %+v, want it gone", w.mg.Status)
	}
}

func TestDeletionWithoutNamespace(t *testing.T) {
	going := namespaceOf(id)
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: now}, []string{"example.com/hold"}
	cases := map[string]struct {
		reason string
		ns     *corev1.Namespace
	}{
		"Gone":    {reason: "the namespace is gone"},
		"Going":   {reason: "the namespace is going"},
		"Foreign": {reason: "the namespace is another's", ns: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-dev"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle()
			must(t, w.Delete(context.Background(), namespaceOf(id)))
			switch {
			case name == "Going":
				held := namespaceOf(id)
				held.Finalizers = []string{"example.com/hold"}
				must(t, w.Create(context.Background(), held))
				must(t, w.Delete(context.Background(), held))
			case tc.ns != nil:
				must(t, w.Create(context.Background(), tc.ns))
			}
			w.mg.DeletionTimestamp = &metav1.Time{Time: now}
			obs, err := w.e.Observe(context.Background(), w.mg)
			if err != nil || obs.ResourceExists {
				t.Errorf("%s: got %+v, %v, want it gone", tc.reason, obs, err)
			}
			if w.e.verdict.uninstall {
				t.Errorf("%s: it must not be touched", tc.reason)
			}
		})
	}
}

// TestDeletionDoesNotHangOnHelm: what cannot be uninstalled goes with the namespace, if that is due.
func TestDeletionDoesNotHangOnHelm(t *testing.T) {
	for _, due := range []bool{true, false} {
		b := boundaryThatStands()
		w := newWorld(t, b)
		w.settle()
		if due {
			must(t, w.Delete(context.Background(), b))
		}
		w.kube.DeleteWithPropagationError = errors.New("no matches for kind")
		w.kube.BuildDummy = true
		w.mg.DeletionTimestamp = &metav1.Time{Time: now}
		gone := false
		for i := 0; i <= uninstallAttempts && !gone; i++ {
			gone = w.uninstalled()
			w.clock.Step(longestRetry)
		}
		if gone != due {
			t.Errorf("Boundary deleted %v: got gone %v", due, gone)
		}
	}
}

// TestDeletionWhereHelmsRecordsAreRefused: a cluster that answers, and does not let Helm's records be read, holds the deletion up
// in so many words, until an operator gives it up, or the namespace is due.
func TestDeletionWhereHelmsRecordsAreRefused(t *testing.T) {
	key := client.ObjectKey{Namespace: "tenant-acme", Name: "dev"}
	cases := map[string]struct {
		reason string
		end    func(t *testing.T, w *world, b *v1alpha1.Boundary)
		gone   bool
	}{
		"Stays": {reason: "it is held up", end: func(*testing.T, *world, *v1alpha1.Boundary) {}},
		"Abandoned": {reason: "it is given up", gone: true, end: func(t *testing.T, w *world, _ *v1alpha1.Boundary) {
			c := &steading.Environment{}
			must(t, w.Get(t.Context(), key, c))
			c.Annotations = map[string]string{names.AnnotationAbandon: string(id.UID)}
			must(t, w.Update(t.Context(), c))
		}},
		"NamespaceIsDue": {reason: "what is left goes with the namespace", gone: true, end: func(t *testing.T, w *world, b *v1alpha1.Boundary) { must(t, w.Delete(t.Context(), b)) }},
		"GoesOn":         {reason: "it may be read again", gone: true, end: func(_ *testing.T, w *world, _ *v1alpha1.Boundary) { w.unread = nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := boundaryThatStands()
			w := newWorld(t, b)
			w.settle()
			c := &steading.Environment{}
			must(t, w.Get(t.Context(), key, c))
			c.Finalizers = []string{"x"}
			must(t, w.Update(t.Context(), c))
			must(t, w.Delete(t.Context(), c))
			w.mg.DeletionTimestamp = &metav1.Time{Time: now}
			w.unread = fmt.Errorf("cannot act as the account: %w", kerrors.NewForbidden(corev1.Resource("serviceaccounts/token"), names.Deployer, nil))
			if obs, err := w.e.Observe(t.Context(), w.mg); !kerrors.IsForbidden(err) {
				t.Fatalf("got %+v, %v", obs, err)
			}
			must(t, w.Get(t.Context(), key, c))
			if said := c.Status.GetCondition(steading.ConditionDeletionBlocked); c.Status.Phase != steading.EnvironmentDeletionBlocked || said.Reason != steading.ReasonCredentialRefused || !strings.Contains(said.Message, "cannot be uninstalled yet: cannot act as the account") {
				t.Errorf("it says %+v in phase %s", said, c.Status.Phase)
			}
			tc.end(t, w, b)
			gone := false
			for i := 0; i < uninstallAttempts && !gone; i++ {
				w.clock.Step(longestRetry)
				if w.unread == nil {
					gone = w.uninstalled()
					continue
				}
				obs, err := w.e.Observe(t.Context(), w.mg)
				gone = err == nil && !obs.ResourceExists
			}
			if gone != tc.gone {
				t.Errorf("%s: gone %v", tc.reason, gone)
			}
		})
	}
}

// TestOneOperationAtATime has many passes while one is running.
func TestOneOperationAtATime(t *testing.T) {
	w := newWorld(t)
	hold, running := make(chan struct{}), make(chan struct{}, 16)
	w.e.operations.begin(keyOf(w.mg), deploying, digest(w.mg.Spec.ForProvider), func(context.Context) (*steading.ChosenImage, error) {
		running <- struct{}{}
		<-hold
		return &steading.ChosenImage{}, nil
	})
	<-running
	for range 5 {
		w.pass()
		if st := w.mg.Status.AtProvider; st.State != v1alpha1.ReleaseDeploying {
			t.Fatalf("got %+v", st)
		}
	}
	w.mg.DeletionTimestamp = &metav1.Time{Time: now}
	obs, err := w.e.Observe(context.Background(), w.mg)
	if err != nil || !obs.ResourceExists || w.e.verdict.uninstall {
		t.Errorf("got %+v, %v: an operation in flight is not interrupted", obs, err)
	}
	if len(w.helm.records(t)) > 0 || len(running) > 0 {
		t.Error("another operation was begun beside it")
	}
	close(hold)
	<-w.wake
}

func TestTransitions(t *testing.T) {
	running := v1alpha1.Deployed{Version: "1", Power: steading.PowerRunning}
	stopped := v1alpha1.Deployed{Version: "1", Power: steading.PowerStopped}
	newer := v1alpha1.Deployed{Version: "2", Power: steading.PowerRunning}
	cases := map[string]struct {
		before *v1alpha1.Deployed
		now    v1alpha1.Deployed
		want   []v1alpha1.Transition
	}{
		"First":        {now: running, want: []v1alpha1.Transition{v1alpha1.TransitionProvisioned}},
		"FirstStopped": {now: stopped, want: []v1alpha1.Transition{v1alpha1.TransitionProvisioned, v1alpha1.TransitionStopped}},
		"Same":         {before: &running, now: running},
		"Stop":         {before: &running, now: stopped, want: []v1alpha1.Transition{v1alpha1.TransitionStopped}},
		"Start":        {before: &stopped, now: running, want: []v1alpha1.Transition{v1alpha1.TransitionStarted}},
		"Upgrade":      {before: &running, now: newer, want: []v1alpha1.Transition{v1alpha1.TransitionProvisioned}},
		"Both":         {before: &stopped, now: newer, want: []v1alpha1.Transition{v1alpha1.TransitionProvisioned, v1alpha1.TransitionStarted}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, transitions(tc.before, tc.now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
