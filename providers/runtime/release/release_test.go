package release

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	events "k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/runtime/usage"
)

// A world is a control plane and a target, which are one here, with a Helm that keeps its records in memory and sends
// nothing. What the cluster would make of a release, the tests do.
type world struct {
	t *testing.T
	client.WithWatch
	e      *external
	clock  *clocktesting.FakeClock
	events *events.FakeRecorder
	helm   *helmEngine
	kube   *kubefake.FailingKubeClient
	wake   chan types.NamespacedName
	mg     *v1alpha1.Release

	image    steading.ChosenImage
	imageErr error
	asked    int // for an image
	chartErr error
	template string
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, steading.AddToScheme, v1alpha1.AddToScheme, metav1.AddMetaToScheme} {
		must(t, add(s))
	}
	w := &world{
		t: t, clock: clocktesting.NewFakeClock(now), events: events.NewFakeRecorder(16), wake: make(chan types.NamespacedName, 16),
		image: steading.ChosenImage{Choice: steading.ImageCanonical, Reason: imageNoRegistry}, template: configMap,
		mg: &v1alpha1.Release{
			ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-dev", Generation: 1},
			Spec:       v1alpha1.ReleaseSpec{ForProvider: parameters("1")},
		},
	}
	w.WithWatch = clientfake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&steading.Environment{}).
		WithObjects(append(objs, namespaceOf(id), &steading.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "dev"}})...).Build()
	w.helm, w.kube = newEngine()
	w.restart()
	return w
}

// restart is another process: it knows nothing of the operations of the one before.
func (w *world) restart() {
	w.e = &external{
		o: kit.Options{
			Clock: w.clock, Poll: kit.Poll{Ready: time.Hour, NotReady: time.Hour},
			Claims: kit.NewClaimReporter(w, w, w.events), Record: event.NewNopRecorder(),
		},
		operations:    newOperations(w.clock, func(n types.NamespacedName) { w.wake <- n }),
		usage:         usage.Log{Client: w, Reader: w},
		rollbackAfter: time.Minute,
		system:        w, client: w, cache: w, helm: fakeHelm{w}, source: fakeSource{w},
	}
}

func namespaceOf(i v1alpha1.Identity) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-dev"}}
	kit.Stamp(ns, i)
	return ns
}

type fakeHelm struct{ w *world }

func (f fakeHelm) engine(context.Context, v1alpha1.ReleaseParameters) (*helmEngine, error) {
	return f.w.helm, nil
}

func (f fakeHelm) history(context.Context, v1alpha1.ReleaseParameters) (history, error) {
	rs, err := f.w.helm.cfg.Releases.History("acme-devops")
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	var h history
	for _, r := range rs {
		rec := recordOf(r.Labels, now)
		rec.revision, rec.status = int64(r.Version), r.Info.Status
		h = append(h, rec)
	}
	slices.SortFunc(h, func(a, b record) int { return int(a.revision - b.revision) })
	return h, err
}

type fakeSource struct{ w *world }

func (f fakeSource) chart(context.Context, v1alpha1.ReleaseParameters) func() (*chart.Chart, error) {
	return func() (*chart.Chart, error) {
		if f.w.chartErr != nil {
			return nil, f.w.chartErr
		}
		return of("", f.w.template).chart()
	}
}

func (f fakeSource) image(_ context.Context, p v1alpha1.ReleaseParameters) (*steading.ChosenImage, error) {
	f.w.asked++
	i := f.w.image
	i.Ref = "r/devops:" + p.Version
	return &i, f.w.imageErr
}

// pass is one reconcile, without waiting for what it began.
func (w *world) pass() {
	w.t.Helper()
	ctx := context.Background()
	obs, err := w.e.Observe(ctx, w.mg)
	if err != nil {
		w.t.Fatalf("Observe: %v", err)
	}
	if !obs.ResourceExists {
		w.t.Fatal("a Release that is not deleted exists")
	}
	if !obs.ResourceUpToDate {
		if _, err := w.e.Update(ctx, w.mg); err != nil {
			w.t.Fatal(err)
		}
	}
	w.e.verdict = verdict{}
}

// settle reconciles until nothing is begun any more, as being woken does.
func (w *world) settle() {
	w.t.Helper()
	for range 8 {
		w.pass()
		op := w.e.operations.of(keyOf(w.mg))
		if op == nil || len(w.wake) == 0 && !op.running {
			return
		}
		select {
		case <-w.wake:
		case <-time.After(10 * time.Second):
			w.t.Fatal("an operation does not end")
		}
	}
	w.t.Fatalf("it does not come to rest: %+v", w.mg.Status.AtProvider)
}

// runs makes the workload of the release as the cluster would, with this status of its pod; nil is one that is ready.
func (w *world) runs(pod *corev1.PodStatus) {
	w.t.Helper()
	l, a := labels(id), map[string]string{releaseNameAnnotation: "acme-devops"}
	d, rs := deploymentOf(), replicaSet("new", "1")
	if pod == nil {
		available(&d)
		pod = &corev1.PodStatus{}
	}
	if w.mg.Spec.ForProvider.Power == steading.PowerStopped {
		scaledToZero(&d)
	}
	d.Labels, d.Annotations, rs.Labels, rs.Namespace = l, a, l, "acme-dev"
	p := podOf("new", *pod)
	p.Labels, p.Namespace = l, "acme-dev"
	objs := []client.Object{&d, &rs, &p}
	for _, obj := range objs {
		_ = w.Delete(context.Background(), obj)
	}
	if w.mg.Spec.ForProvider.Power == steading.PowerStopped {
		objs = objs[:2]
	}
	for _, obj := range objs {
		obj.SetResourceVersion("")
		must(w.t, w.Create(context.Background(), obj))
	}
}

func (w *world) want(p v1alpha1.ReleaseParameters) { w.mg.Spec.ForProvider = p; w.mg.Generation++ }

func (w *world) transitions() []string {
	w.t.Helper()
	l := &v1alpha1.UsageEventList{}
	must(w.t, w.List(context.Background(), l))
	var out []string
	for _, e := range l.Items {
		out = append(out, string(e.Spec.Transition)+" "+e.Spec.Version)
	}
	slices.Sort(out)
	return out
}

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
		b := &v1alpha1.Boundary{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-dev", Finalizers: []string{"x"}}}
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
