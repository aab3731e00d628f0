package pool

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/server"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/internal/referred"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

var linux = client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-linux"}

// world is an API server with pool linux of tenant acme, the Forgejo whose queue it watches, and the pool's reconciler. What
// becomes of runners the test says.
type world struct {
	t       *testing.T
	kube    client.WithWatch
	forgejo *forgejo.Server
	clock   *clocktesting.FakeClock
	stop    func() // The servers' looks.
	guard   *fakeGuard
	kinds   fakeKinds
	trial   fakeTrial
	events  chan string
	r       *Reconciler
	url     string
	looked  int64
}

// fakeGuard has guard rails, or says why not.
type fakeGuard struct {
	err, releaseErr error
	released        []string
}

func (g *fakeGuard) Ensure(context.Context, *forgejov1.Runner) error { return g.err }

func (g *fakeGuard) Release(_ context.Context, r *forgejov1.Runner) error {
	g.released = append(g.released, r.Name)
	return g.releaseErr
}

// fakeKinds are one definition that machines need. It is served when it is said to be.
type fakeKinds struct{ served bool }

func (*fakeKinds) Defined(c forgejov1.RunnerConfig) []string {
	if c.VM == nil {
		return nil
	}
	return []string{"machines.example.com"}
}

func (k *fakeKinds) Served(c forgejov1.RunnerConfig) bool { return c.VM == nil || k.served }

// fakeTrial takes what it is tried with, or says why not. What is tried is counted.
type fakeTrial struct {
	err   error
	tried int
}

func (f *fakeTrial) try(context.Context, *forgejov1.RunnerInstance) (bool, error) {
	f.tried++
	return f.err == nil, f.err
}

type uninformed struct{}

func (uninformed) Of(context.Context, string, ...referred.Subject) {}

func newWorld(t *testing.T, edit ...func(*steading.RunnerPoolSpec)) *world {
	t.Helper()
	clock := clocktesting.NewFakeClock(epoch)
	w := &world{t: t, clock: clock, forgejo: forgejo.New(forgejo.Options{Clock: clock}), guard: &fakeGuard{}, stop: func() {}}
	t.Cleanup(func() { w.stop() })
	w.must(w.forgejo.AddUser("ann", false))
	w.must(w.forgejo.AddOrganization("acme", "ann"))
	w.must(w.forgejo.AddRepository("acme", "web", false))
	token, err := w.forgejo.AddToken("ann", "write:organization")
	w.must(err)
	srv := httptest.NewServer(w.forgejo)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { w.forgejo.UnsetFaults("", "") })
	w.url = srv.URL

	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, forgejov1.AddToScheme, steading.AddToScheme} {
		w.must(add(s))
	}
	w.kube = fake.NewClientBuilder().WithScheme(s).
		WithStatusSubresource(&forgejov1.Runner{}, &forgejov1.RunnerInstance{}, &steading.RunnerPool{}).
		WithObjects(
			&forgejov1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig}, Spec: forgejov1.ProviderConfigSpec{AllowedServers: []string{"127.0.0.0/8"}}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "forgejo-pat"}, Data: map[string][]byte{"token": []byte(token)}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-ci", Labels: map[string]string{names.LabelRunnersFor: "acme"}}},
			&steading.RunnerPool{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "linux", UID: "claim"}},
			w.runner(edit...),
		).Build()
	w.restart(w.kube)
	return w
}

// runner of the pool, as it is composed.
func (w *world) runner(edit ...func(*steading.RunnerPoolSpec)) *forgejov1.Runner {
	spec := settings(append([]func(*steading.RunnerPoolSpec){func(s *steading.RunnerPoolSpec) { s.Forgejo.URL = w.url }}, edit...)...)
	return &forgejov1.Runner{
		ObjectMeta: metav1.ObjectMeta{Namespace: linux.Namespace, Name: linux.Name, UID: "runner", Generation: 1, Finalizers: []string{names.Finalizer}},
		Spec: forgejov1.RunnerSpec{ForProvider: forgejov1.RunnerParameters{
			Identity: runtimev1.Identity{Tenant: "acme", UID: "xr"}, Claim: runtimev1.ClaimReference{Namespace: "tenant-acme", Name: "linux"}, Settings: spec,
		}},
	}
}

// restart the provider, which sees the API server through c.
func (w *world) restart(c client.Client) {
	w.t.Helper()
	rec := record.NewFakeRecorder(1000)
	w.events = rec.Events
	w.stop()
	servers := server.New(server.Options{Reader: w.kube, Uncached: w.kube, ControlPlane: "https://192.0.2.1", Clock: w.clock, Log: logging.NewNopLogger()})
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { _ = servers.Start(ctx) })
	w.stop = func() {
		cancel()
		done.Wait()
	}
	w.r = newReconciler(c, w.kube, Options{
		Options: kit.Options{
			Log: logging.NewNopLogger(), Clock: w.clock, Poll: kit.Poll{Ready: time.Hour, NotReady: time.Hour}, Claims: kit.NewClaimReporter(w.kube, w.kube, rec),
		},
		Servers: servers, Guard: w.guard, Check: func(forgejov1.RunnerConfig, map[string]string) error { return nil }, Try: w.trial.try, Kinds: &w.kinds,
	})
	w.r.informed = uninformed{}
	w.looked = 0
}

func (w *world) through(f interceptor.Funcs) { w.restart(interceptor.NewClient(w.kube, f)) }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	for begin := time.Now(); !so(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			w.t.Fatalf("waited in vain until %s", what)
		}
	}
}

func (w *world) pass() reconcile.Result {
	w.t.Helper()
	res, err := w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: linux})
	w.must(err)
	return res
}

// written has the numbers of the status written, which is done seldom.
func (w *world) written() *forgejov1.Runner {
	w.t.Helper()
	w.clock.Step(seldom)
	w.pass()
	return w.get()
}

func (w *world) session() *server.Session {
	w.t.Helper()
	s := w.r.memories.of(linux).session
	if s == nil {
		w.t.Fatal("the pool has no session")
	}
	return s
}

// look has the server looked at once more, and then the pool passed.
func (w *world) look() reconcile.Result {
	w.t.Helper()
	w.looks()
	return w.pass()
}

// looks has the server looked at once more.
func (w *world) looks() {
	w.t.Helper()
	if w.looked == 0 {
		w.pass()
	} else {
		w.clock.Step(30 * time.Second)
	}
	w.until("the server is looked at", func() bool {
		l, ok := w.session().Look()
		return ok && l.Number > w.looked
	})
	l, _ := w.session().Look()
	w.looked = l.Number
}

// failedLook is one that the server spoils.
func (w *world) failedLook() {
	w.t.Helper()
	w.clock.Step(30 * time.Second)
	w.until("the look fails", func() bool { return w.session().Poll().Outcome == steading.PollFailed })
	w.pass()
}

// replaceToken in its Secret by another one of the same user.
func (w *world) replaceToken() {
	w.t.Helper()
	token, err := w.forgejo.AddToken("ann", "write:organization")
	w.must(err)
	w.must(w.kube.Update(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "forgejo-pat"}, Data: map[string][]byte{"token": []byte(token)},
	}))
}

func (w *world) queue(n int) {
	w.t.Helper()
	for range n {
		_, err := w.forgejo.Queue(forgejo.NewJob{Repository: "acme/web", Labels: []string{"docker"}})
		w.must(err)
	}
}

func (w *world) instances() []forgejov1.RunnerInstance {
	w.t.Helper()
	l := &forgejov1.RunnerInstanceList{}
	w.must(w.kube.List(context.Background(), l, client.InNamespace(names.SystemNamespace)))
	return l.Items
}

func (w *world) have(n int) []forgejov1.RunnerInstance {
	w.t.Helper()
	all := w.instances()
	if len(all) != n {
		w.t.Fatalf("there are %d runners, not %d", len(all), n)
	}
	return all
}

// register a runner as its own controller does.
func (w *world) register(i *forgejov1.RunnerInstance) {
	w.t.Helper()
	reg, err := w.session().Client().Register(context.Background(), i.Name, names.RegistrationMark("xr", i.Name))
	w.must(err)
	meta.SetExternalCreateSucceeded(i, w.clock.Now())
	w.must(w.kube.Update(context.Background(), i))
	i.Status.AtProvider.Phase = forgejov1.RunnerPending
	i.Status.AtProvider.Registration = &forgejov1.Registration{ID: reg.ID, UUID: reg.UUID}
	i.Status.AtProvider.Child = &forgejov1.ChildReference{Kind: "Job", Name: i.Name, UID: "job"}
	w.must(w.kube.Status().Update(context.Background(), i))
}

// judge a runner, which is then released.
func (w *world) judge(i *forgejov1.RunnerInstance, reason forgejov1.RunnerReason) {
	w.t.Helper()
	if reg := i.Status.AtProvider.Registration; reg != nil {
		w.must(w.session().Client().Deregister(context.Background(), reg.ID))
	}
	ended(reason, w.clock.Now().Sub(epoch))(i)
	w.must(w.kube.Status().Update(context.Background(), i))
}

// gone takes a runner's record away, as its own controller does once it is deleted.
func (w *world) gone(i *forgejov1.RunnerInstance) {
	w.t.Helper()
	w.must(client.IgnoreNotFound(w.kube.Get(context.Background(), client.ObjectKeyFromObject(i), i)))
	i.Finalizers = nil
	w.must(client.IgnoreNotFound(w.kube.Update(context.Background(), i)))
}

func (w *world) get() *forgejov1.Runner {
	w.t.Helper()
	r := &forgejov1.Runner{}
	w.must(w.kube.Get(context.Background(), linux, r))
	return r
}

func (w *world) isGone() bool {
	w.t.Helper()
	return kerrors.IsNotFound(w.kube.Get(context.Background(), linux, &forgejov1.Runner{}))
}

// edit the settings, as a new generation.
func (w *world) edit(f func(*steading.RunnerPoolSpec)) {
	w.t.Helper()
	r := w.get()
	f(&r.Spec.ForProvider.Settings)
	r.Generation++
	w.must(w.kube.Update(context.Background(), r))
}

// told are the events on the claim since it was last asked.
func (w *world) told() []string {
	var all []string
	for {
		select {
		case e := <-w.events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func (w *world) tells(text string) {
	w.t.Helper()
	if all := strings.Join(w.told(), "\n"); !strings.Contains(all, text) {
		w.t.Errorf("no event says %q: %s", text, all)
	}
}

var errBroken = errors.New("broken")
