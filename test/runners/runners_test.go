package runners

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/forgejo"
	"github.com/steading-dev/steading/test/fakes/runnernode"
	"github.com/steading-dev/steading/test/harness"
)

// phase checks a pool's.
func phase(want steading.RunnerPoolPhase) func(*steading.RunnerPool) error {
	return func(p *steading.RunnerPool) error {
		if p.Status.Phase != want {
			return fmt.Errorf("it is %s, not %s", p.Status.Phase, want)
		}
		return nil
	}
}

// says checks the reason of a condition that does not hold.
func says(kind, reason string) func(*steading.RunnerPool) error {
	return func(p *steading.RunnerPool) error {
		for _, c := range p.Status.Conditions {
			if string(c.Type) == kind && c.Status == corev1.ConditionFalse && string(c.Reason) == reason {
				return nil
			}
		}
		return fmt.Errorf("%s is not False for %s", kind, reason)
	}
}

// TestEveryJobGetsARunnerOfItsOwn: each job of a queue that is longer than the pool is wide runs once, on a runner that takes
// nothing else. Red jobs are as well as green ones. Of what ran the history is kept, with nothing to reach the server by; and
// when the claim is deleted nothing is left.
func TestEveryJobGetsARunnerOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "queue")
	w.queue(t, 6, "log: [hello]")
	w.queue(t, 2, "result: failure")
	p := w.pool(3)
	suite.Create(t, p)
	w.waitJobs(t)
	if peak := w.forgejo.PeakRegistrations(); peak > 3 {
		t.Errorf("at most 3 runners were asked for, and %d were there at once", peak)
	}
	for _, r := range w.forgejo.Registrations() {
		if !r.Ephemeral || len(r.Jobs) > 1 || r.Scope != "queue" {
			t.Errorf("runner %s is ephemeral: %t, of scope %s, and ran jobs %v", r.Name, r.Ephemeral, r.Scope, r.Jobs)
		}
	}
	w.wait(t, p, "is idle", func(p *steading.RunnerPool) error {
		if s := p.Status; s.Live != 0 || s.Waiting != 0 || s.ConsecutiveFailures != 0 || s.Phase != steading.RunnerPoolReady {
			return errors.New("it is not idle")
		}
		return nil
	})
	w.wantHistory(t, "linux", 2)
	suite.Delete(t, p)
	suite.WantGone(t, p)
	w.wantNothing(t)
}

// wantHistory expects so many records of consumed runners, each with its Job, and no credential.
func (w *world) wantHistory(t *testing.T, pool string, records int) {
	t.Helper()
	harness.Eventually(t, "history of "+pool, func(ctx context.Context) error {
		all, err := w.instances(ctx, pool)
		if err != nil {
			return err
		}
		if len(all) != records {
			return fmt.Errorf("there are %d records, not %d", len(all), records)
		}
		for _, i := range all {
			if o := i.Status.AtProvider; o.Phase != forgejov1.RunnerCompleted || o.Reason != forgejov1.RunnerConsumed || !o.Released {
				return fmt.Errorf("%s is %s, %s: %s, released %t", i.Name, o.Phase, o.Reason, o.Message, o.Released)
			}
			if err := suite.Admin.Get(ctx, client.ObjectKey{Namespace: w.namespace(), Name: i.Name}, &batchv1.Job{}); err != nil {
				return fmt.Errorf("the Job of %s is not kept: %w", i.Name, err)
			}
		}
		jobs, secrets := &batchv1.JobList{}, &corev1.SecretList{}
		if err := errors.Join(suite.Admin.List(ctx, jobs, client.InNamespace(w.namespace())), suite.Admin.List(ctx, secrets, client.InNamespace(w.namespace()))); err != nil {
			return err
		}
		if len(jobs.Items) != records || len(secrets.Items) != 0 {
			return fmt.Errorf("there are %d Jobs, not %d, and %d Secrets", len(jobs.Items), records, len(secrets.Items))
		}
		return nil
	})
}

// TestTheTokenStaysWhereItIs: the API token is in no object of the job namespace, and in none of the records.
func TestTheTokenStaysWhereItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "secretive")
	w.queue(t, 1, "sleep: 3s")
	suite.Create(t, w.pool(1))
	harness.Eventually(t, "a runner is made", func(ctx context.Context) error {
		return w.wantCredential(ctx, t)
	})
	w.waitJobs(t)
}

// wantCredential expects a Secret in the job namespace, with what is made of it, and that none of it has the API token, nor a
// record.
func (w *world) wantCredential(ctx context.Context, t *testing.T) error {
	t.Helper()
	secrets := &corev1.SecretList{}
	if err := suite.Admin.List(ctx, secrets, client.InNamespace(w.namespace())); err != nil {
		return err
	}
	for _, s := range secrets.Items {
		for key, value := range s.Data {
			if strings.Contains(string(value), w.token) {
				t.Errorf("Secret %s has the API token as %s", s.Name, key)
			}
		}
	}
	for namespace, kinds := range map[string][]client.ObjectList{
		w.namespace():         {&batchv1.JobList{}, &corev1.PodList{}},
		names.SystemNamespace: {&forgejov1.RunnerInstanceList{}, &forgejov1.RunnerList{}},
	} {
		for _, l := range kinds {
			if err := suite.Admin.List(ctx, l, client.InNamespace(namespace)); err != nil {
				return err
			}
			if meta.LenList(l) == 0 {
				return fmt.Errorf("there is nothing yet in the %T of namespace %s", l, namespace)
			}
			raw, err := json.Marshal(l)
			if err != nil {
				return err
			}
			if bytes.Contains(raw, []byte(w.token)) {
				t.Errorf("the API token is in the %T of namespace %s", l, namespace)
			}
		}
	}
	if len(secrets.Items) == 0 {
		return errors.New("there is no Secret yet")
	}
	return nil
}

// TestANamespaceHasToBeGiven: without the operator's label nothing is made, and the claim says what is missing. With it all goes
// on.
func TestANamespaceHasToBeGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "given")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace()}}
	harness.Change(t, &suite, ns, func(ns *corev1.Namespace) { delete(ns.Labels, names.LabelRunnersFor) })
	w.queue(t, 1, "")
	p := w.pool(1)
	suite.Create(t, p)
	w.wait(t, p, "is refused its namespace", says("RunnersMade", "JobNamespaceRefused"))
	if all := w.forgejo.Registrations(); len(all) != 0 {
		t.Errorf("%d runners were registered all the same", len(all))
	}
	harness.Change(t, &suite, ns, func(ns *corev1.Namespace) { ns.Labels[names.LabelRunnersFor] = w.tenant })
	w.waitJobs(t)
}

// TestAnImageThatCannotBePulledFreesItsSlot: the runner fails with the pod's own reason, and the pool waits before it makes
// another.
func TestAnImageThatCannotBePulledFreesItsSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "nopull")
	w.queue(t, 1, "")
	w.node.SetFault(runnernode.Fault{Kind: runnernode.FaultImagePull, Pods: labels.SelectorFromSet(labels.Set{names.LabelPool: names.Runner(w.tenant, "linux")})})
	p := w.pool(1)
	p.Spec.StartupTimeoutSeconds = 10
	suite.Create(t, p)
	w.wait(t, p, "backs off", func(p *steading.RunnerPool) error {
		if p.Status.ConsecutiveFailures == 0 || p.Status.NextTryTime == nil || len(p.Status.Recent) == 0 || p.Status.Recent[0].Reason != string(forgejov1.StartupTimeout) {
			return errors.New("it does not back off")
		}
		return phase(steading.RunnerPoolBackingOff)(p)
	})
	suite.Delete(t, p)
	suite.WantGone(t, p)
	w.wantNothing(t)
}

// TestDeletingARecordKillsItsRunner: an operator deletes it, and Job, credential and registration go. The job is the server's to
// give up.
func TestDeletingARecordKillsItsRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "killed")
	w.queue(t, 1, "result: hang")
	p := w.pool(1)
	suite.Create(t, p)
	var victim forgejov1.RunnerInstance
	harness.Eventually(t, "a runner has the job", func(ctx context.Context) error {
		all, err := w.instances(ctx, "linux")
		if err != nil {
			return err
		}
		for _, i := range all {
			if i.Status.AtProvider.State == forgejov1.StateActive {
				victim = i
				return nil
			}
		}
		return fmt.Errorf("none of %d is active", len(all))
	})
	suite.Delete(t, &victim)
	suite.WantGone(t, &victim)
	for _, r := range w.forgejo.Registrations() {
		if r.Name == victim.Name && r.Deleted.IsZero() {
			t.Errorf("%s is registered still", r.Name)
		}
	}
	for _, o := range []client.Object{
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(), Name: victim.Name}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(), Name: names.RunnerCredentials(victim.Name)}},
	} {
		suite.WantGone(t, o)
	}
}

// TestAPoolIsDeletedWhateverIsGone before it.
func TestAPoolIsDeletedWhateverIsGone(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		lose   func(t *testing.T, w *world)
	}{
		"token": {"With a tenant's last apply goes the Secret, often before the claim.", func(t *testing.T, w *world) {
			t.Helper()
			suite.Delete(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(w.tenant), Name: tokenSecret}})
		}},
		"space": {"The job namespace is deleted under it.", func(t *testing.T, w *world) {
			t.Helper()
			suite.Delete(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace()}})
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "lost"+name)
			w.queue(t, 1, "result: hang")
			p := w.pool(1)
			suite.Create(t, p)
			w.wait(t, p, "has a runner", func(p *steading.RunnerPool) error {
				if p.Status.Active == 0 {
					return errors.New("none is active")
				}
				return nil
			})
			tc.lose(t, w)
			suite.Delete(t, p)
			suite.WantGone(t, p)
			w.wantNothing(t)
		})
	}
}

func oneSpare(p *steading.RunnerPool) error {
	if p.Status.Available != 1 {
		return fmt.Errorf("%d are", p.Status.Available)
	}
	return nil
}

// TestAServerThatIsDownDecidesNothing: while it answers with errors no runner is made or judged, and the claim says so.
func TestAServerThatIsDownDecidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "down")
	p := w.pool(2)
	p.Spec.MinRunners = 1
	suite.Create(t, p)
	w.wait(t, p, "has a spare", oneSpare)
	before, err := w.instances(t.Context(), "linux")
	if err != nil || len(before) != 1 {
		t.Fatalf("%d records: %v", len(before), err)
	}
	if err := w.forgejo.SetFault(forgejo.Fault{Kind: forgejo.FaultHTML}); err != nil {
		t.Fatal(err)
	}
	w.wait(t, p, "says so", phase(steading.RunnerPoolUnreachable))
	after, err := w.instances(t.Context(), "linux")
	if err != nil || len(after) != 1 || after[0].UID != before[0].UID || after[0].Status.AtProvider.Reason != "" {
		t.Errorf("the spare did not outlive the fault: %+v, %v", after, err)
	}
	w.forgejo.UnsetFaults("", "")
	w.wait(t, p, "goes on", phase(steading.RunnerPoolReady))
	w.queue(t, 2, "")
	w.waitJobs(t)
}

// TestASuspendedPoolMakesNone, and lets a job in hand end.
func TestASuspendedPoolMakesNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "rests")
	p := w.pool(2)
	p.Spec.MinRunners = 1
	suite.Create(t, p)
	w.wait(t, p, "has a spare", oneSpare)
	harness.Change(t, &suite, p, func(p *steading.RunnerPool) { p.Spec.Suspend = true })
	w.wait(t, p, "is suspended and empty", func(p *steading.RunnerPool) error {
		if p.Status.Live != 0 {
			return fmt.Errorf("%d runners are live", p.Status.Live)
		}
		return phase(steading.RunnerPoolSuspended)(p)
	})
	w.queue(t, 1, "")
	harness.Change(t, &suite, p, func(p *steading.RunnerPool) { p.Spec.Suspend = false })
	w.waitJobs(t)
}
