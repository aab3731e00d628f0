package release

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
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
	refusals map[types.UID]string
	// made is when Helm's records were.
	made time.Time
	// unread is why Helm's records cannot be read.
	unread error

	// What a component's values come from.
	from      []string
	values    map[string]any
	secrecy   secrecy
	valuesErr error
	letGo     int
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, steading.AddToScheme, v1alpha1.AddToScheme, metav1.AddMetaToScheme} {
		must(t, add(s))
	}
	w := &world{
		t: t, clock: clocktesting.NewFakeClock(now), events: events.NewFakeRecorder(16), wake: make(chan types.NamespacedName, 16), made: now,
		image: steading.ChosenImage{Choice: steading.ImageCanonical, Reason: imageNoRegistry}, template: configMap,
		mg: &v1alpha1.Release{
			ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-dev", Generation: 1},
			Spec:       v1alpha1.ReleaseSpec{ForProvider: parameters("1")},
		},
	}
	if !slices.ContainsFunc(objs, func(o client.Object) bool { _, ok := o.(*v1alpha1.Boundary); return ok }) {
		objs = append(objs, boundaryThatStands())
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
		system:        w, boundaries: w, client: w, cache: w, helm: fakeHelm{w}, source: fakeSource{w}, values: fakeValues{w},
	}
}

func namespaceOf(i v1alpha1.Identity) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-dev"}}
	kit.Stamp(ns, i)
	return ns
}

func boundaryThatStands() *v1alpha1.Boundary {
	b := &v1alpha1.Boundary{ObjectMeta: metav1.ObjectMeta{Namespace: names.SystemNamespace, Name: "acme-dev", Finalizers: []string{"x"}}}
	kit.MarkReady(b)
	return b
}

type fakeHelm struct{ w *world }

func (f fakeHelm) engine(context.Context, v1alpha1.ReleaseParameters) (*helmEngine, error) {
	return f.w.helm, nil
}

func (f fakeHelm) history(context.Context, v1alpha1.ReleaseParameters) (history, error) {
	if f.w.unread != nil {
		return nil, f.w.unread
	}
	rs, err := f.w.helm.cfg.Releases.History("acme-devops")
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	var h history
	for _, r := range rs {
		rec := recordOf(r.Labels, f.w.made)
		rec.revision, rec.status = int64(r.Version), r.Info.Status
		h = append(h, rec)
	}
	slices.SortFunc(h, func(a, b record) int { return int(a.revision - b.revision) })
	return h, err
}

func (f fakeHelm) refusal(_ context.Context, _ v1alpha1.ReleaseParameters, of types.UID, _ time.Time) (string, error) {
	return f.w.refusals[of], nil
}

type fakeSource struct{ w *world }

func (f fakeSource) chart(context.Context, v1alpha1.ReleaseParameters) func() ([]byte, error) {
	return func() ([]byte, error) {
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

type fakeValues struct{ w *world }

func (f fakeValues) versions(_ context.Context, mg *v1alpha1.Release) ([]string, error) {
	if mg.Spec.ForProvider.Component == nil {
		return nil, nil
	}
	return f.w.from, nil
}

func (f fakeValues) read(context.Context, v1alpha1.ReleaseParameters) (map[string]any, secrecy, error) {
	return f.w.values, f.w.secrecy, f.w.valuesErr
}

func (f fakeValues) letGo(context.Context, *v1alpha1.Release) error {
	f.w.letGo++
	return nil
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
		case <-time.After(time.Minute):
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
