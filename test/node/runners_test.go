//go:build node

package node

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local"
	"github.com/steading-dev/steading/package/build"
	"github.com/steading-dev/steading/test/fakes/forgejo"
	"github.com/steading-dev/steading/test/harness"
)

// patience with a burst, which takes a few seconds a job and core.
const patience = 10*time.Minute + burstJobs*5*time.Second

// TestEveryJobRunsOnceThroughKills: more jobs than runners are queued at once, and provider and API server are killed in the
// middle. Each job runs exactly once, and at no time are there more registrations or children than the pool may have, but once
// as many. In the end nothing is left that history does not explain.
func TestEveryJobRunsOnceThroughKills(t *testing.T) {
	w := newRunners(t, "ci")
	pool := w.pool("linux", func(s *steading.RunnerPoolSpec) {
		s.MaxRunners, s.SuccessfulJobsHistoryLimit, s.FailedJobsHistoryLimit = burstMax, 3, 3
	})
	peak := w.watchChildren()
	for i := range burstJobs {
		w.queue(fmt.Sprintf("job-%d", i), "sleep: 1s\nlog: [working]\nresult: success\n")
	}
	suite.Create(t, pool)
	w.killMeanwhile(burstKills)

	w.wait("every job has run", func(context.Context) error {
		for _, j := range w.server.Jobs() {
			if j.Status != forgejo.StatusSuccess {
				return fmt.Errorf("job %s is %s: %s", j.Name, j.Status, w.progress())
			}
		}
		return nil
	})
	for _, j := range w.server.Jobs() {
		if len(j.Runs) != 1 {
			t.Errorf("job %s ran %d times: %+v", j.Name, len(j.Runs), j.Runs)
		}
	}
	if have := w.server.PeakRegistrations(); have != burstMax {
		t.Errorf("at most %d registrations were there at once, want %d", have, burstMax)
	}
	w.wait("only history is left", func(ctx context.Context) error { return w.onlyHistory(ctx, pool) })
	if have := peak(); len(have) != burstMax {
		t.Errorf("at most %d children ran at once, want %d:\n%s", len(have), burstMax, strings.Join(have, "\n"))
	}

	suite.Delete(t, pool)
	suite.WantGone(t, pool)
	w.wait("nothing is left", w.nothing)
}

// runners are a tenant's, with a Forgejo of its own beside the node.
type runners struct {
	*testing.T
	tenant string
	jobs   string // namespace
	server *forgejo.Server
	url    string
	image  string
}

func newRunners(t *testing.T, tenant string) *runners {
	t.Helper()
	suite.NewTenant(t, tenant, steading.TenantSpec{})
	w := &runners{T: t, tenant: tenant, jobs: tenant + "-jobs", server: forgejo.New(forgejo.Options{})}
	w.must(w.server.AddUser("root", true))
	w.must(w.server.AddOrganization("acme", "root"))
	w.must(w.server.AddRepository("acme", "web", true))
	token, err := w.server.AddToken("root", "write:organization")
	w.must(err)
	w.serve()
	w.image = push(t, build.Program{
		Name: "cp", File: compile(t, "./cp"),
		Programs: map[string]string{"/bin/forgejo-runner": compile(t, "github.com/steading-dev/steading/test/fakes/forgejo/onejob/cmd/forgejo-runner")},
	}, "forgejo-runner", "1").Pinned()
	w.allowServer()
	suite.Create(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.jobs, Labels: map[string]string{names.LabelRunnersFor: tenant}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(tenant), Name: "forgejo-pat"}, StringData: map[string]string{"token": token}},
	)
	return w
}

func (w *runners) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// serve Forgejo where pods of the node reach this machine.
func (w *runners) serve() {
	l, err := net.Listen("tcp", net.JoinHostPort(suite.Plane.Address(), "0"))
	w.must(err)
	s := &http.Server{Handler: w.server, ReadHeaderTimeout: time.Minute}
	go s.Serve(l) //nolint:errcheck // It ends when it is closed.
	w.Cleanup(func() { _ = s.Close() })
	w.url = "http://" + l.Addr().String()
}

// allowServer lets pools' servers be on this machine, and be spoken to without TLS.
func (w *runners) allowServer() {
	c := &forgejov1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: names.DefaultProviderConfig}}
	allowed := suite.Plane.Address() + "/32"
	harness.Eventually(w.T, "the server is allowed", func(ctx context.Context) error {
		err := suite.Admin.Get(ctx, client.ObjectKeyFromObject(c), c)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		c.Spec.AllowedServers = []string{allowed}
		if err != nil {
			return suite.Admin.Create(ctx, c)
		}
		return suite.Admin.Update(ctx, c)
	})
}

// pool that serves the label docker.
func (w *runners) pool(name string, edit func(*steading.RunnerPoolSpec)) *steading.RunnerPool {
	p := &steading.RunnerPool{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(w.tenant), Name: name}}
	p.Spec = steading.RunnerPoolSpec{
		Forgejo: steading.ForgejoServer{
			URL: w.url, Scope: steading.ForgejoScope{Organization: "acme"},
			TokenSecretRef: steading.TokenSecretReference{Name: "forgejo-pat", Key: steading.DefaultTokenKey},
		},
		Labels: []string{"docker"}, JobNamespace: w.jobs, MaxRunners: 1, PollIntervalSeconds: 5, StartupTimeoutSeconds: 600, JobTimeoutSeconds: 3600,
		SuccessfulJobsHistoryLimit: 3, FailedJobsHistoryLimit: 1, Assignment: steading.AssignAny, Fairness: steading.FairnessNone,
		Pod: &steading.RunnerPod{RunnerImage: w.image, JobContainer: steading.DefaultJobContainer},
	}
	p.Spec.Pod.Template.Raw = fmt.Appendf(nil, `{"spec": {"containers": [{"name": "job", "image": %q, "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]}}`, w.image)
	edit(&p.Spec)
	return p
}

func (w *runners) queue(name, payload string) {
	w.Helper()
	_, err := w.server.Queue(forgejo.NewJob{Repository: "acme/web", Name: name, Labels: []string{"docker"}, Payload: payload})
	w.must(err)
}

// wait longer than other tests do.
func (w *runners) wait(what string, check func(context.Context) error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			w.Fatalf("%s: not within %s: %v", what, patience, err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// progress in a line, for a failure.
func (w *runners) progress() string {
	by := map[string]int{}
	for _, j := range w.server.Jobs() {
		by[j.Status]++
	}
	return fmt.Sprint(by)
}

// watchChildren until the test ends, and return what tells the most that ran at once, as they were then.
func (w *runners) watchChildren() func() []string {
	var (
		mu   sync.Mutex
		most []string
	)
	running := map[string]string{}
	count := func(j *batchv1.Job, gone bool) {
		mu.Lock()
		defer mu.Unlock()
		delete(running, j.Name)
		if !gone && !ended(j) {
			running[j.Name] = fmt.Sprintf("%s, suspended %t: %+v", j.Name, ptr.Deref(j.Spec.Suspend, false), j.Status)
		}
		if len(running) > len(most) {
			most = slices.Sorted(maps.Values(running))
		}
	}
	watching, err := client.NewWithWatch(suite.Plane.Config(), client.Options{Scheme: suite.Admin.Scheme()})
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	w.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil { // It ends when the API server is killed.
			in, err := watching.Watch(ctx, &batchv1.JobList{}, client.InNamespace(w.jobs))
			if err != nil {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			mu.Lock()
			clear(running) // The watch begins with all there are.
			mu.Unlock()
			for e := range in.ResultChan() {
				if j, ok := e.Object.(*batchv1.Job); ok {
					count(j, e.Type == watch.Deleted)
				}
			}
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return most
	}
}

// ended reports whether a Job has nothing running, for ever. That its pods have ended it says before it says that it is complete,
// which takes the Job controller a while when there are many.
func ended(j *batchv1.Job) bool {
	over := []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, batchv1.JobFailureTarget, batchv1.JobFailed, batchv1.JobSuspended}
	for _, c := range j.Status.Conditions {
		if slices.Contains(over, c.Type) && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return j.DeletionTimestamp != nil
}

// killMeanwhile kills the provider's pods and the master in turns, each after as many more jobs have run as the seed says.
func (w *runners) killMeanwhile(kills int) {
	seed := uint64(time.Now().UTC().YearDay())
	if s, err := strconv.ParseUint(os.Getenv("RUNNER_SEED"), 10, 64); err == nil {
		seed = s
	}
	w.Logf("repeat this with RUNNER_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for kill := range kills {
		after := kill*burstJobs/kills + r.IntN(burstJobs/kills)
		w.wait(fmt.Sprintf("%d jobs have run", after), func(context.Context) error {
			done := 0
			for _, j := range w.server.Jobs() {
				if j.Status == forgejo.StatusSuccess {
					done++
				}
			}
			if done < after {
				return fmt.Errorf("%d have: %s", done, w.progress())
			}
			return nil
		})
		if kill%2 == 0 {
			w.killProvider()
		} else {
			w.killMaster()
		}
	}
}

// killMaster kills what of the master the burst names.
func (w *runners) killMaster() {
	for _, name := range burstMaster {
		w.must(suite.Plane.Supervisor.Kill(name))
	}
	for _, name := range burstMaster {
		w.must(suite.Plane.Supervisor.WaitReady(w.Context(), name))
	}
}

// killProvider deletes its pods without grace, the leading one and the other.
func (w *runners) killProvider() {
	harness.Eventually(w.T, "provider-forgejo's pods are killed", func(ctx context.Context) error {
		return suite.Admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(local.CrossplaneNamespace),
			client.MatchingLabels{"app.kubernetes.io/name": names.ProviderForgejo}, client.GracePeriodSeconds(0))
	})
}

// onlyHistory is an error while there is more than history explains: records that are judged, with their Jobs.
func (w *runners) onlyHistory(ctx context.Context, pool *steading.RunnerPool) error {
	records := &forgejov1.RunnerInstanceList{}
	if err := suite.Admin.List(ctx, records, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelTenant: w.tenant}); err != nil {
		return err
	}
	known, consumed := map[string]bool{}, int32(0)
	for _, r := range records.Items {
		if !r.Status.AtProvider.Released {
			return fmt.Errorf("runner %s is %s %s", r.Name, r.Status.AtProvider.Phase, r.Status.AtProvider.Reason)
		}
		known[r.Name] = true
		if r.Status.AtProvider.Reason == forgejov1.RunnerConsumed {
			consumed++
		}
	}
	if consumed != pool.Spec.SuccessfulJobsHistoryLimit || len(known) > int(consumed+pool.Spec.FailedJobsHistoryLimit) {
		return fmt.Errorf("%d records are kept, %d of them consumed", len(known), consumed)
	}
	for _, r := range w.server.Registrations() {
		if r.Deleted.IsZero() {
			return fmt.Errorf("runner %s is registered", r.Name)
		}
	}
	return w.inNamespace(ctx, known)
}

// nothing is an error while anything is left at all.
func (w *runners) nothing(ctx context.Context) error { return w.inNamespace(ctx, nil) }

// inNamespace is an error while there are credentials, or Jobs or pods but those of known runners.
func (w *runners) inNamespace(ctx context.Context, known map[string]bool) error {
	secrets, jobs, pods := &corev1.SecretList{}, &batchv1.JobList{}, &corev1.PodList{}
	for _, l := range []client.ObjectList{secrets, jobs, pods} {
		if err := suite.Admin.List(ctx, l, client.InNamespace(w.jobs)); err != nil {
			return err
		}
	}
	for _, s := range secrets.Items {
		return fmt.Errorf("Secret %s is there", s.Name)
	}
	for _, j := range jobs.Items {
		if !known[j.Name] {
			return fmt.Errorf("Job %s is there", j.Name)
		}
	}
	for _, p := range pods.Items {
		if !known[p.Labels[names.LabelRunner]] {
			return fmt.Errorf("pod %s is there", p.Name)
		}
	}
	return nil
}
