package instance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	crossevent "github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/forgejo/child"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

const name = "acme-linux-4kx9vb2m"

var (
	key   = client.ObjectKey{Namespace: names.SystemNamespace, Name: name}
	inJob = client.ObjectKey{Namespace: "acme-ci", Name: name}
	// errDead is what everything answers to a process that is dead.
	errDead = errors.New("the process is dead")
)

// A world is a control plane, a Forgejo, and the controller of one runner, which may die.
type world struct {
	t *testing.T
	client.WithWatch
	forgejo *forgejo.Server
	api     *api.Client
	url     string
	// token that the server is spoken to by.
	token  string
	clock  *clocktesting.FakeClock
	events *record.FakeRecorder
	r      reconcile.Reconciler

	// repository whose jobs are queued.
	repository string
	// listed and looked are the last look at the server.
	listed map[int64]api.Runner
	looked time.Time
	// failing is since when looks fail, recovered when they went well again, and outage how long they had failed.
	failing, recovered time.Time
	outage             time.Duration
	// noSession is why there is no session with the server.
	noSession error
	// withdrawn are tokens that the server does not take any more, by their Secret.
	withdrawn map[string]error
	// vmi is the instance of the runner's machine. It is kept here: of its numbers the fake API server knows not all.
	vmi *kubevirtv1.VirtualMachineInstance
	// unserved is whether the API server has no KubeVirt.
	unserved bool
	// refuse answers a write to the API server in its place, and hide a read that no cache answers.
	refuse func(verb string, o client.Object) error
	hide   func(k client.ObjectKey) error

	// calls that changed anything, in order.
	calls []string
	// requests to the API server: writes, and reads that no cache answers.
	requests []string
	// budget of calls until the process dies; negative: it lives on. The last one may take effect and its answer be lost.
	budget int
	lost   bool
	died   bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, steading.AddToScheme, v1alpha1.AddToScheme, kubevirtv1.AddToScheme, metav1.AddMetaToScheme} {
		must(t, add(s))
	}
	clock := clocktesting.NewFakeClock(time.Now().Truncate(time.Second))
	w := &world{t: t, clock: clock, forgejo: forgejo.New(forgejo.Options{Clock: clock}), events: record.NewFakeRecorder(64), budget: -1, repository: "root/web"}
	w.WithWatch = clientfake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha1.RunnerInstance{}, &batchv1.Job{}, &corev1.Pod{}).
		WithObjects(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-ci"}},
			&steading.RunnerPool{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "linux"}}).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(o client.Object) []string {
			e, ok := o.(*corev1.Event)
			if !ok {
				return nil
			}
			return []string{e.InvolvedObject.Name}
		}).
		WithInterceptorFuncs(w.intercept()).Build()
	w.serve()
	w.restart()
	return w
}

// serve Forgejo, to an administrator.
func (w *world) serve() {
	w.t.Helper()
	must(w.t, w.forgejo.AddUser("root", true))
	must(w.t, w.forgejo.AddRepository("root", "web", false))
	var err error
	w.token, err = w.forgejo.AddToken("root", "write:admin")
	must(w.t, err)
	srv := httptest.NewServer(w.forgejo)
	w.t.Cleanup(srv.Close)
	w.t.Cleanup(func() { w.forgejo.UnsetFaults("", "") })
	w.url = srv.URL
	w.api, err = api.New(api.Config{URL: srv.URL, Token: w.token, Scope: api.Instance(), Timeout: 5 * time.Second})
	must(w.t, err)
	w.t.Cleanup(w.api.Close)
}

// restart the process: what it had in memory is gone.
func (w *world) restart() {
	w.budget, w.died = -1, false
	o := kit.Options{
		Log: logging.NewNopLogger(), Poll: kit.Poll{Ready: time.Hour, NotReady: time.Hour}, Limiter: ratelimiter.NewGlobal(1000),
		Clock: w.clock, Metrics: managed.NewMRMetricRecorder(), Record: crossevent.NewNopRecorder(),
		Claims: kit.NewClaimReporter(w, w, w.events),
	}
	c := &connector{
		o: o, servers: w, marks: &marks{}, letGoAfter: 2 * time.Minute,
		children: children{client: w, cached: w, uncached: uncached{w}},
		tracker:  kit.NewTracker(w, &v1alpha1.ProviderConfigUsage{}),
	}
	mgr := &fake.Manager{Client: w, Scheme: w.Scheme()}
	w.r = kit.Reconciler(mgr, v1alpha1.GroupVersion.WithKind(v1alpha1.RunnerInstanceKind), o, claimOf, c)
}

// call is one that changes something. It is not made by a process that is dead.
func (w *world) call(what string, do func() error) error {
	if w.budget == 0 {
		w.died = true
		return errDead
	}
	w.budget--
	err := do()
	if err == nil {
		w.calls = append(w.calls, what)
	}
	if w.budget == 0 && w.lost {
		w.died = true
		return errDead
	}
	return err
}

func (w *world) write(verb string, o client.Object, do func() error) error {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*")
	_, kind, _ = strings.Cut(kind, ".")
	if kind == "Unstructured" {
		kind = o.GetObjectKind().GroupVersionKind().Kind
	}
	if kind == "Event" || kind == "ProviderConfigUsage" {
		return do()
	}
	w.requests = append(w.requests, verb+" "+kind)
	return w.call(verb+" "+kind, func() error {
		if err := w.served(o); err != nil {
			return err
		}
		if w.refuse != nil {
			if err := w.refuse(verb, o); err != nil {
				return err
			}
		}
		return do()
	})
}

// uncached reads go to the API server.
type uncached struct{ w *world }

func (u uncached) Get(ctx context.Context, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	_, kind, _ := strings.Cut(fmt.Sprintf("%T", o), ".")
	u.w.requests = append(u.w.requests, "get "+kind)
	if u.w.hide != nil {
		if err := u.w.hide(k); err != nil {
			return err
		}
	}
	return u.w.Get(ctx, k, o, opts...)
}

func (u uncached) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	_, kind, _ := strings.Cut(fmt.Sprintf("%T", l), ".")
	u.w.requests = append(u.w.requests, "list "+kind)
	return u.w.List(ctx, l, opts...)
}

// served returns the error of a kind that the API server does not have.
func (w *world) served(o client.Object) error {
	gvk, err := w.GroupVersionKindFor(o)
	if err == nil && w.unserved && gvk.Group == child.VirtualMachine.Group {
		return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return nil
}

func (w *world) intercept() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if w.died {
				return errDead
			}
			if err := w.served(o); err != nil {
				return err
			}
			if vmi, ok := o.(*kubevirtv1.VirtualMachineInstance); ok && w.vmi != nil {
				w.vmi.DeepCopyInto(vmi)
				return nil
			}
			return c.Get(ctx, k, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return w.write("create", o, func() error {
				o.SetUID(uuid.NewUUID())
				return c.Create(ctx, o, opts...)
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return w.write("update", o, func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.write("patch", o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.write("delete", o, func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return w.write(sub, o, func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
	}
}

// Session with the server.
func (w *world) Session(_ context.Context, f steading.ForgejoServer, _ string) (Server, error) {
	if w.noSession != nil {
		return nil, w.noSession
	}
	if err := w.withdrawn[f.TokenSecretRef.Name]; err != nil {
		return nil, err
	}
	return serverOf{w}, nil
}

// Untrack nothing.
func (w *world) Untrack(client.ObjectKey) {}

type serverOf struct{ w *world }

func (s serverOf) Register(ctx context.Context, n, description string) (r api.Registration, err error) {
	err = s.w.call("register", func() error {
		r, err = s.w.api.Register(ctx, n, description)
		return err
	})
	return r, err
}

func (s serverOf) Deregister(ctx context.Context, id int64) error {
	return s.w.call("deregister", func() error { return s.w.api.Deregister(ctx, id) })
}

func (s serverOf) Runner(ctx context.Context, id int64) (api.Runner, error) {
	if s.w.died {
		return api.Runner{}, errDead
	}
	return s.w.api.Runner(ctx, id)
}

func (s serverOf) User(ctx context.Context) (int64, error) {
	if s.w.died {
		return 0, errDead
	}
	return s.w.api.User(ctx)
}

func (s serverOf) Runners(ctx context.Context) ([]api.Runner, error) {
	if s.w.died {
		return nil, errDead
	}
	return s.w.api.Runners(ctx)
}

func (s serverOf) Job(ctx context.Context, handle string, labels []string, _ time.Time) (api.JobStatus, error) {
	if s.w.died {
		return "", errDead
	}
	jobs, err := s.w.api.Jobs(ctx, labels)
	for _, j := range jobs {
		if j.Handle == handle {
			return j.Status, err
		}
	}
	return "", err
}

func (s serverOf) Jobs(ctx context.Context, labels []string) ([]api.Job, error) {
	if s.w.died {
		return nil, errDead
	}
	return s.w.api.Jobs(ctx, labels)
}

func (s serverOf) Listed(id int64) (*api.Runner, time.Time) {
	if r, ok := s.w.listed[id]; ok {
		return &r, s.w.looked
	}
	return nil, s.w.looked
}

func (s serverOf) Recovered() (at time.Time, outage time.Duration) {
	return s.w.recovered, max(0, s.w.outage)
}

func (s serverOf) Track(int64, client.ObjectKey) {}

// look at the server, as a session does. One that fails leaves no look.
func (w *world) look() {
	w.t.Helper()
	all, err := w.api.Runners(w.t.Context())
	if err != nil {
		w.listed, w.looked = nil, time.Time{}
		since(&w.failing, true, w.clock.Now())
		return
	}
	if !w.failing.IsZero() {
		w.recovered, w.outage, w.failing = w.clock.Now(), w.clock.Since(w.failing), time.Time{}
	}
	w.clock.Step(time.Millisecond)
	w.listed, w.looked = map[int64]api.Runner{}, w.clock.Now()
	for _, r := range all {
		w.listed[r.ID] = r
	}
}

// reconcile once.
func (w *world) reconcile() (reconcile.Result, error) {
	return w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: key})
}

// converge until it would wait for an event, or for a time.
func (w *world) converge() time.Duration {
	w.t.Helper()
	for range 12 {
		res, err := w.reconcile()
		if err == nil && !res.Requeue && res.RequeueAfter == 0 { //nolint:staticcheck // What managed.Reconciler returns.
			return 0
		}
		if err == nil && res.RequeueAfter >= 100*time.Millisecond {
			return res.RequeueAfter
		}
	}
	w.t.Fatalf("it does not come to rest: %v", w.calls)
	return 0
}

// later is after so long, and a look.
func (w *world) later(d time.Duration) {
	w.t.Helper()
	w.clock.Step(d)
	w.look()
	w.converge()
}

// record of the runner, nil when it is gone.
func (w *world) record() *v1alpha1.RunnerInstance {
	w.t.Helper()
	return read[v1alpha1.RunnerInstance](w, key)
}

func (w *world) status() v1alpha1.RunnerInstanceObservation {
	w.t.Helper()
	mg := w.record()
	if mg == nil {
		w.t.Fatal("the record is gone")
	}
	return mg.Status.AtProvider
}

// read an object, nil if it is not there.
func read[T any, P interface {
	*T
	client.Object
}](w *world, k client.ObjectKey) P {
	w.t.Helper()
	o := P(new(T))
	err := w.Get(w.t.Context(), k, o)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return o
}

func (w *world) job() *batchv1.Job { w.t.Helper(); return read[batchv1.Job](w, inJob) }

func (w *world) secret() *corev1.Secret {
	w.t.Helper()
	return read[corev1.Secret](w, client.ObjectKey{Namespace: "acme-ci", Name: name + "-credentials"})
}

// registrations that are there.
func (w *world) registrations() []forgejo.Registration {
	w.t.Helper()
	return slices.DeleteFunc(w.forgejo.Registrations(), func(r forgejo.Registration) bool { return !r.Deleted.IsZero() })
}

// pod of the Job in a phase, with its container in a state.
func (w *world) pod(phase corev1.PodPhase, state corev1.ContainerState) {
	w.t.Helper()
	j := w.job()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.Namespace, Name: j.Name + "-x", Labels: j.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: j.Name, UID: j.UID, Controller: ptr.To(true)}},
		},
		Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: "job", Image: "node:22", State: state}}},
	}
	if have := read[corev1.Pod](w, client.ObjectKeyFromObject(p)); have != nil {
		have.Status = p.Status
		must(w.t, w.Status().Update(w.t.Context(), have))
		return
	}
	must(w.t, w.Create(w.t.Context(), p))
}

func (w *world) podRuns() {
	w.t.Helper()
	w.pod(corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.clock.Now())}})
}

func (w *world) podEnds(code int32) {
	w.t.Helper()
	phase, condition := corev1.PodSucceeded, batchv1.JobComplete
	if code != 0 {
		phase, condition = corev1.PodFailed, batchv1.JobFailed
	}
	w.pod(phase, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: metav1.NewTime(w.clock.Now())}})
	j := w.job()
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue})
	must(w.t, w.Status().Update(w.t.Context(), j))
}

// rpc is what the runner says to the server, by the credential in its Secret.
func (w *world) rpc(procedure string, in, out any) {
	w.t.Helper()
	s := w.secret()
	w.rpcAs(s.Annotations[names.AnnotationRegistrationUUID], string(s.Data["token"]), procedure, in, out)
}

// rpcAs is what some runner says to the server.
func (w *world) rpcAs(uuid, token, procedure string, in, out any) {
	w.t.Helper()
	body, err := json.Marshal(in)
	must(w.t, err)
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+"/api/actions/runner.v1.RunnerService/"+procedure, bytes.NewReader(body))
	must(w.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Runner-Uuid", uuid)
	req.Header.Set("X-Runner-Token", token)
	res, err := http.DefaultClient.Do(req)
	must(w.t, err)
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: %s", procedure, res.Status)
	}
	must(w.t, json.NewDecoder(res.Body).Decode(out))
}

// connect the runner.
func (w *world) connect() {
	w.t.Helper()
	w.rpc("Declare", map[string]any{"version": "v12.8.0", "labels": []string{"docker"}}, &map[string]any{})
}

// take a job that is queued, and return its task.
func (w *world) take() string {
	w.t.Helper()
	task := w.fetch()
	w.report(task, "RESULT_UNSPECIFIED")
	return task
}

// fetch a job that is queued, and say nothing of it yet.
func (w *world) fetch() string {
	w.t.Helper()
	_, err := w.forgejo.Queue(forgejo.NewJob{Repository: w.repository, Labels: []string{"docker"}})
	must(w.t, err)
	var res struct {
		Task struct {
			ID string `json:"id"`
		} `json:"task"`
	}
	w.rpc("FetchTask", map[string]any{}, &res)
	if res.Task.ID == "" {
		w.t.Fatal("no task")
	}
	return res.Task.ID
}

// steal a job that waits, as the runner of another pool does, and return that one's registration.
func (w *world) steal() int64 {
	w.t.Helper()
	r, err := w.api.Register(w.t.Context(), "thief", "another pool's")
	must(w.t, err)
	w.rpcAs(r.UUID, r.Token, "Declare", map[string]any{"version": "v12.8.0", "labels": []string{"docker"}}, &map[string]any{})
	var res struct {
		Task struct {
			ID string `json:"id"`
		} `json:"task"`
	}
	w.rpcAs(r.UUID, r.Token, "FetchTask", map[string]any{}, &res)
	if res.Task.ID == "" {
		w.t.Fatal("there is no job to steal")
	}
	return r.ID
}

// targeted runner that is ready, for a job that waits and whose id is returned.
func (w *world) targeted() int64 {
	w.t.Helper()
	id, err := w.forgejo.Queue(forgejo.NewJob{Repository: "root/web", Labels: []string{"docker"}})
	must(w.t, err)
	j, err := w.forgejo.Job(id)
	must(w.t, err)
	w.ready(func(mg *v1alpha1.RunnerInstance) {
		mg.Spec.ForProvider.Config.Assignment = steading.AssignTargeted
		mg.Spec.ForProvider.Job = &v1alpha1.QueuedJob{Handle: j.Handle, ID: 7}
	})
	return id
}

// report on a task.
func (w *world) report(task, result string) {
	w.t.Helper()
	w.rpc("UpdateTask", map[string]any{"state": map[string]any{"id": task, "result": result}}, &map[string]any{})
}

// runner that its pool just made.
func (w *world) runner(change ...func(*v1alpha1.RunnerInstance)) {
	w.t.Helper()
	mg := &v1alpha1.RunnerInstance{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, Finalizers: []string{names.Finalizer}, CreationTimestamp: metav1.NewTime(w.clock.Now()),
		Labels: map[string]string{names.LabelPool: "acme-linux"},
	}}
	mg.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionAll}
	mg.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "default"}
	mg.Spec.ForProvider = v1alpha1.RunnerInstanceParameters{
		Identity: runtimev1.Identity{Tenant: "acme", UID: "uid-pool"},
		Claim:    runtimev1.ClaimReference{Namespace: "tenant-acme", Name: "linux"},
		Pool:     v1alpha1.PoolReference{Name: "acme-linux", UID: "uid-runner"},
		Config: v1alpha1.RunnerConfig{
			Forgejo: steading.ForgejoServer{URL: w.url, Scope: steading.ForgejoScope{Instance: &steading.WholeScope{}}, TokenSecretRef: steading.TokenSecretReference{Name: "pat"}},
			Labels:  []string{"docker"}, JobNamespace: "acme-ci", Assignment: steading.AssignAny, StartupTimeoutSeconds: 600, JobTimeoutSeconds: 3600,
			Pod: &steading.RunnerPod{
				RunnerImage: "runner:12", JobContainer: "job",
				Template: runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"job","image":"node:22"}]}}`)},
			},
		},
	}
	for _, c := range change {
		c(mg)
	}
	must(w.t, w.Create(w.t.Context(), mg))
	w.calls = nil
}

// ready runner that waits for a job.
func (w *world) ready(change ...func(*v1alpha1.RunnerInstance)) {
	w.t.Helper()
	w.runner(change...)
	w.converge()
	w.podRuns()
	w.connect()
	w.later(time.Second)
	if st := w.status(); st.State != v1alpha1.StateIdle || st.OnlineTime == nil || st.StartTime == nil {
		w.t.Fatalf("it is not ready: %+v", st)
	}
	w.calls = nil
}

// drain the runner, as its pool asks for.
func (w *world) drain() {
	w.t.Helper()
	mg := w.record()
	mg.Spec.ForProvider.Drain = true
	must(w.t, w.Update(w.t.Context(), mg))
	w.calls = nil
}

// delete the record.
func (w *world) delete() {
	w.t.Helper()
	must(w.t, w.Delete(w.t.Context(), w.record()))
	w.calls = nil
}

// wantNothing is left, but for history.
func (w *world) wantNothing(history bool) {
	w.t.Helper()
	if r := w.registrations(); len(r) > 0 {
		w.t.Errorf("registrations are left: %+v", r)
	}
	if w.secret() != nil {
		w.t.Error("the credential is left")
	}
	if (w.job() != nil) != history {
		w.t.Errorf("Job is there: %t, want %t", w.job() != nil, history)
	}
	if (w.record() != nil) != history {
		w.t.Errorf("record is there: %t, want %t", w.record() != nil, history)
	}
}

// wantOneRunner is there: one registration, whose credential works, and a child that names itself by it.
func (w *world) wantOneRunner() {
	w.t.Helper()
	st, all := w.status(), w.registrations()
	if len(all) != 1 || st.Registration == nil || st.Registration.ID != all[0].ID || st.Registration.UUID != all[0].UUID {
		w.t.Fatalf("the server has %+v, recorded is %+v", all, st.Registration)
	}
	j := w.job()
	if j == nil || st.Child == nil || st.Child.UID != j.UID {
		w.t.Fatalf("Job %v, recorded is %+v", j, st.Child)
	}
	if args := j.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, all[0].UUID) {
		w.t.Errorf("the runner names itself otherwise: %v", args)
	}
	if r, ok := child.RegistrationOf(w.secret()); !ok || r != *st.Registration {
		w.t.Errorf("the credential is of %+v", r)
	}
	w.connect()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
