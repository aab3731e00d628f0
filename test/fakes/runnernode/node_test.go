package runnernode

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	runtimev1 "github.com/steading-dev/steading/apis/runtime/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/providers/forgejo/child"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

const namespace = "acme-ci"

// A world is a control plane with a node for runners, and a Forgejo.
type world struct {
	client.Client
	plane   *local.Plane
	node    *Node
	forgejo *forgejo.Server
	url     string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane; not under -short")
	}
	p, err := local.Start(t.Context(), local.Options{Name: "runnernode", Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, p.Stop()) })
	w := &world{Client: p.Client(), plane: p, forgejo: forgejo.New(forgejo.Options{})}
	must(t, w.forgejo.AddUser("root", true))
	must(t, w.forgejo.AddRepository("root", "web", false))
	srv := httptest.NewServer(w.forgejo)
	t.Cleanup(srv.Close)
	w.url = srv.URL
	must(t, w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	must(t, w.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.RunnerAccount}}))
	w.node, err = Start(t.Context(), p.Config(), Options{FetchInterval: 100 * time.Millisecond, ReportInterval: 300 * time.Millisecond})
	must(t, err)
	return w
}

// A runner is one that a provider made.
type runner struct {
	*world
	t      *testing.T
	mg     *forgejov1.RunnerInstance
	secret *corev1.Secret
	job    *batchv1.Job
}

// runner that is registered, and will have a Job of a template with the grace period.
func (w *world) runner(t *testing.T, name, label string, grace int64) *runner {
	t.Helper()
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "job", Image: "example.com/job:1"}}, TerminationGracePeriodSeconds: &grace}
	Place(&spec)
	raw, err := json.Marshal(corev1.PodTemplateSpec{Spec: spec})
	must(t, err)
	mg := &forgejov1.RunnerInstance{ObjectMeta: metav1.ObjectMeta{Name: name}}
	mg.Spec.ForProvider = forgejov1.RunnerInstanceParameters{
		Identity: runtimev1.Identity{Tenant: "acme", UID: "uid-pool"}, Pool: forgejov1.PoolReference{Name: "acme-linux"},
		Config: forgejov1.RunnerConfig{
			Forgejo: steading.ForgejoServer{URL: w.url}, Labels: []string{label}, JobNamespace: namespace, Assignment: steading.AssignAny, JobTimeoutSeconds: 600,
			Pod: &steading.RunnerPod{RunnerImage: "example.com/runner:1", JobContainer: "job", Template: runtime.RawExtension{Raw: raw}},
		},
	}
	registration := w.register(t, name)
	o, err := child.Of(mg, registration.UUID)
	must(t, err)
	job, ok := o.(*batchv1.Job)
	if !ok {
		t.Fatalf("the child is a %T", o)
	}
	return &runner{world: w, t: t, mg: mg, secret: child.Credentials(mg, registration), job: job}
}

func (w *world) register(t *testing.T, name string) child.Registration {
	t.Helper()
	token, err := w.forgejo.AddToken("root", "all")
	must(t, err)
	body := bytes.NewBufferString(fmt.Sprintf(`{"name":%q,"ephemeral":true}`, name))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/api/v1/admin/actions/runners", body)
	must(t, err)
	req.Header.Set("Authorization", "token "+token)
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close() //nolint:errcheck // It is read.
	var r child.Registration
	must(t, json.NewDecoder(res.Body).Decode(&r))
	return r
}

// start the runner.
func (r *runner) start() *runner {
	r.t.Helper()
	must(r.t, r.Create(r.t.Context(), r.secret))
	must(r.t, r.Create(r.t.Context(), r.job))
	return r
}

// pod of the runner, nil while there is none.
func (r *runner) pod() *corev1.Pod {
	r.t.Helper()
	l := &corev1.PodList{}
	must(r.t, r.List(r.t.Context(), l, client.InNamespace(namespace), client.MatchingLabels{names.LabelRunner: r.mg.Name}))
	if len(l.Items) == 0 {
		return nil
	}
	return &l.Items[0]
}

// isIn reports whether the runner's pod is in a phase.
func (r *runner) isIn(phase corev1.PodPhase) func() bool {
	return func() bool {
		p := r.pod()
		return p != nil && p.Status.Phase == phase
	}
}

// state of the container of the job.
func (r *runner) state() corev1.ContainerState {
	r.t.Helper()
	p := r.pod()
	if p == nil || len(p.Status.ContainerStatuses) != 1 {
		r.t.Fatalf("the pod is %+v", p)
	}
	return p.Status.ContainerStatuses[0].State
}

// runs reports whether the program of the runner runs.
func (r *runner) runs() bool {
	return slices.ContainsFunc(r.node.Running(), func(pod string) bool { return strings.HasPrefix(pod, r.mg.Name+"-") })
}

// finished reports whether the Job ended, and in which way.
func (r *runner) finished(kind batchv1.JobConditionType) func() bool {
	return func() bool {
		must(r.t, r.Get(r.t.Context(), client.ObjectKeyFromObject(r.job), r.job))
		return slices.ContainsFunc(r.job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
	}
}

func (w *world) queue(t *testing.T, label, payload string) int64 {
	t.Helper()
	id, err := w.forgejo.Queue(forgejo.NewJob{Repository: "root/web", Labels: []string{label}, Payload: payload})
	must(t, err)
	return id
}

// is reports whether a job has a status.
func (w *world) is(t *testing.T, id int64, status string) func() bool {
	return func() bool { return w.job(t, id).Status == status }
}

func (w *world) job(t *testing.T, id int64) forgejo.Job {
	t.Helper()
	j, err := w.forgejo.Job(id)
	must(t, err)
	return j
}

// One plane for all: starting one takes longer than what is looked at. Each has a label of its own, so that none takes
// another's job.
func TestNode(t *testing.T) {
	w := newWorld(t)
	t.Run("behaviour", func(t *testing.T) {
		for name, behaviour := range map[string]func(*testing.T, *world){
			"a queued job is run once, and its pod succeeds":             runsQueued,
			"a runner waits for its job":                                 waits,
			"a runner with a handle takes the job of that handle":        takesHandle,
			"a pod waits until its Secret is there":                      waitsForSecret,
			"a deleted pod takes its runner with it":                     killsDeleted,
			"a deleted pod with a grace period ends its job well":        endsDeleted,
			"an image that cannot be pulled keeps a pod pending":         pullsNothing,
			"a runner that exits at once fails its pod":                  exits,
			"a runner that dies leaves its job to the server":            dies,
			"a runner that ignores that its pod is deleted ends its job": ignoresStop,
			"pods that were not placed on the node run elsewhere":        keepsOthersOut,
			"a pod whose arguments are wrong fails":                      refusesArguments,
			"the node renews its lease":                                  beats,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				behaviour(t, w)
			})
		}
	})
}

func runsQueued(t *testing.T, w *world) {
	id := w.queue(t, "queued", "{sleep: 500ms, log: [hello]}")
	r := w.runner(t, "acme-linux-queued", "queued", 0).start()
	eventually(t, "the Job completes", r.finished(batchv1.JobComplete))
	j := w.job(t, id)
	if j.Status != forgejo.StatusSuccess || len(j.Runs) != 1 || j.Runs[0].RunnerName != r.mg.Name {
		t.Errorf("the job is %+v", j)
	}
	if s := r.state().Terminated; s == nil || s.ExitCode != 0 || s.Reason != "Completed" {
		t.Errorf("the container is %+v", s)
	}
	if r.runs() {
		t.Error("the runner still runs")
	}
}

func waits(t *testing.T, w *world) {
	r := w.runner(t, "acme-linux-waits", "waits", 0).start()
	eventually(t, "the pod runs", r.isIn(corev1.PodRunning))
	if !r.runs() {
		t.Error("the pod runs, and the runner does not")
	}
	w.queue(t, "waits", "")
	eventually(t, "the Job completes", r.finished(batchv1.JobComplete))
}

func takesHandle(t *testing.T, w *world) {
	older := w.queue(t, "handle", "")
	id := w.queue(t, "handle", "")
	r := w.runner(t, "acme-linux-handle", "handle", 0)
	r.mg.Spec.ForProvider.Config.Assignment = steading.AssignTargeted
	r.mg.Spec.ForProvider.Job = &forgejov1.QueuedJob{ID: id, Handle: w.job(t, id).Handle}
	uuid := r.secret.Annotations[names.AnnotationRegistrationUUID]
	o, err := child.Of(r.mg, uuid)
	must(t, err)
	r.job, _ = o.(*batchv1.Job)
	r.start()
	eventually(t, "the Job completes", r.finished(batchv1.JobComplete))
	if a, b := w.job(t, older).Status, w.job(t, id).Status; a != forgejo.StatusWaiting || b != forgejo.StatusSuccess {
		t.Errorf("the older job is %s, the handle's %s", a, b)
	}
}

func waitsForSecret(t *testing.T, w *world) {
	r := w.runner(t, "acme-linux-secret", "secret", 0)
	w.queue(t, "secret", "")
	must(t, w.Create(t.Context(), r.job))
	eventually(t, "the pod is being created", func() bool {
		p := r.pod()
		return p != nil && len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Waiting != nil
	})
	must(t, w.Create(t.Context(), r.secret))
	eventually(t, "the Job completes", r.finished(batchv1.JobComplete))
}

func killsDeleted(t *testing.T, w *world) {
	id := w.queue(t, "deleted", "{result: hang}")
	r := w.runner(t, "acme-linux-deleted", "deleted", 0).start()
	eventually(t, "the job runs", w.is(t, id, forgejo.StatusRunning))
	must(t, w.Delete(t.Context(), r.pod()))
	eventually(t, "the runner does not", func() bool { return !r.runs() })
	if s := w.job(t, id).Status; s != forgejo.StatusRunning {
		t.Errorf("a runner that was killed said that its job is %s", s)
	}
}

func endsDeleted(t *testing.T, w *world) {
	id := w.queue(t, "grace", "{result: hang}")
	r := w.runner(t, "acme-linux-grace", "grace", 60).start()
	eventually(t, "the job runs", w.is(t, id, forgejo.StatusRunning))
	p := r.pod()
	must(t, w.Delete(t.Context(), p))
	eventually(t, "the job is cancelled", w.is(t, id, forgejo.StatusCancelled))
	eventually(t, "the pod is gone", func() bool { return kerrors.IsNotFound(w.Get(t.Context(), client.ObjectKeyFromObject(p), p)) })
}

func pullsNothing(t *testing.T, w *world) {
	w.fault(FaultImagePull, "acme-linux-pull")
	id := w.queue(t, "pull", "")
	r := w.runner(t, "acme-linux-pull", "pull", 30).start()
	eventually(t, "the image is not pulled", func() bool {
		p := r.pod()
		return p != nil && len(p.Status.ContainerStatuses) == 1 && ptr.Deref(p.Status.ContainerStatuses[0].State.Waiting, corev1.ContainerStateWaiting{}).Reason == "ErrImagePull"
	})
	if p, s := r.pod(), r.state(); p.Status.Phase != corev1.PodPending || !strings.Contains(s.Waiting.Message, `"example.com/job:1"`) {
		t.Errorf("the pod is %s, the container %+v", p.Status.Phase, s.Waiting)
	}
	p := r.pod()
	must(t, w.Delete(t.Context(), p))
	eventually(t, "the pod is gone", func() bool { return kerrors.IsNotFound(w.Get(t.Context(), client.ObjectKeyFromObject(p), p)) })
	if s := w.job(t, id).Status; s != forgejo.StatusWaiting {
		t.Errorf("the job is %s", s)
	}
}

func exits(t *testing.T, w *world) {
	w.fault(FaultExits, "acme-linux-exits")
	id := w.queue(t, "exits", "")
	r := w.runner(t, "acme-linux-exits", "exits", 0).start()
	eventually(t, "the Job fails", r.finished(batchv1.JobFailed))
	if s := r.state().Terminated; s == nil || s.ExitCode != 1 {
		t.Errorf("the container is %+v", s)
	}
	if s := w.job(t, id).Status; s != forgejo.StatusWaiting {
		t.Errorf("the job is %s", s)
	}
}

func dies(t *testing.T, w *world) {
	w.fault(FaultDies, "acme-linux-dies")
	id := w.queue(t, "dies", "{result: hang}")
	r := w.runner(t, "acme-linux-dies", "dies", 0).start()
	eventually(t, "the Job fails", r.finished(batchv1.JobFailed))
	if s := r.state().Terminated; s == nil || s.ExitCode != 137 {
		t.Errorf("the container is %+v", s)
	}
	if s := w.job(t, id).Status; s != forgejo.StatusRunning {
		t.Errorf("the job is %s", s)
	}
}

func ignoresStop(t *testing.T, w *world) {
	w.fault(FaultIgnoresStop, "acme-linux-ignores")
	id := w.queue(t, "ignores", "{sleep: 3s}")
	r := w.runner(t, "acme-linux-ignores", "ignores", 0).start()
	eventually(t, "the job runs", w.is(t, id, forgejo.StatusRunning))
	p := r.pod()
	must(t, w.Delete(t.Context(), p))
	eventually(t, "the pod is gone", func() bool { return kerrors.IsNotFound(w.Get(t.Context(), client.ObjectKeyFromObject(p), p)) })
	eventually(t, "the job is done", w.is(t, id, forgejo.StatusSuccess))
}

func keepsOthersOut(t *testing.T, w *world) {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"},
		Spec:       corev1.PodSpec{ServiceAccountName: names.RunnerAccount, Containers: []corev1.Container{{Name: "other", Image: "example.com/other:1"}}},
	}
	must(t, w.Create(t.Context(), p))
	eventually(t, "it runs", func() bool {
		must(t, w.Get(t.Context(), client.ObjectKeyFromObject(p), p))
		return p.Status.Phase == corev1.PodRunning
	})
	if p.Spec.NodeName != local.NodeName {
		t.Errorf("it runs on %s", p.Spec.NodeName)
	}
}

func refusesArguments(t *testing.T, w *world) {
	r := w.runner(t, "acme-linux-wrong", "wrong", 0)
	c := &r.job.Spec.Template.Spec.Containers[0]
	c.Args = append(c.Args, "--token=secret")
	r.start()
	eventually(t, "the Job fails", r.finished(batchv1.JobFailed))
	if s := r.state().Terminated; s == nil || s.Reason != "StartError" || !strings.Contains(s.Message, "--token") {
		t.Errorf("the container is %+v", s)
	}
}

func beats(t *testing.T, w *world) {
	lease, key := &coordinationv1.Lease{}, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: DefaultName}
	must(t, w.Get(t.Context(), key, lease))
	first := lease.Spec.RenewTime.Time
	eventually(t, "the lease is renewed", func() bool {
		must(t, w.Get(t.Context(), key, lease))
		return lease.Spec.RenewTime.After(first)
	})
}

// fault of the pod of one runner.
func (w *world) fault(kind FaultKind, runner string) {
	w.node.SetFault(Fault{Kind: kind, Pods: labels.SelectorFromSet(labels.Set{names.LabelRunner: runner}), Times: 1})
}

// TestFaultsHappenAsOftenAsTheySay, to the pods that they are for.
func TestFaultsHappenAsOftenAsTheySay(t *testing.T) {
	pod := func(pool string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.LabelPool: pool}}}
	}
	n := &Node{}
	n.SetFault(Fault{Kind: FaultExits, Pods: labels.SelectorFromSet(labels.Set{names.LabelPool: "a"}), Times: 2})
	n.SetFault(Fault{Kind: FaultDies, Pods: labels.SelectorFromSet(labels.Set{names.LabelPool: "b"})})
	var have []FaultKind
	for _, pool := range []string{"a", "b", "c", "a", "a", "b"} {
		have = append(have, n.strike(pod(pool)))
	}
	n.UnsetFaults()
	have = append(have, n.strike(pod("b")))
	want := []FaultKind{FaultExits, FaultDies, "", FaultExits, "", FaultDies, ""}
	if !slices.Equal(have, want) {
		t.Errorf("have %q, want %q", have, want)
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("not in two minutes: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
