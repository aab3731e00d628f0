package pool

import (
	"context"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

func TestAQueuedJobGetsARunner(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.look()
	all := w.have(2)
	i := all[0]
	if len(i.Name) != len("acme-linux-")+suffix || !strings.HasPrefix(i.Name, "acme-linux-") {
		t.Errorf("its name is %s", i.Name)
	}
	if !metav1.IsControlledBy(&i, w.get()) || len(i.Finalizers) != 1 || i.Labels[names.LabelPool] != "acme-linux" || i.Labels[names.LabelComposite] != "xr" {
		t.Errorf("its metadata is %+v", i.ObjectMeta)
	}
	if i.Spec.ForProvider.Job == nil || i.Spec.ForProvider.Job.Handle == "" || i.Spec.ForProvider.Config.JobNamespace != "acme-ci" {
		t.Errorf("it is made with %+v", i.Spec.ForProvider)
	}
	w.look()
	w.have(2)
	o := w.get().Status.AtProvider
	if diff := cmp.Diff([]int32{2, 2, 0, 2}, []int32{o.Waiting, o.Available, o.Active, o.Live}); diff != "" {
		t.Errorf("waiting, available, active, live: -want, +got:\n%s", diff)
	}
}

// TestRunnersThatTheCacheDoesNotShow are not made again.
func TestRunnersThatTheCacheDoesNotShow(t *testing.T) {
	w := newWorld(t)
	w.through(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		if _, ok := l.(*forgejov1.RunnerInstanceList); ok {
			return nil // It never catches up.
		}
		return c.List(ctx, l, opts...)
	}})
	w.queue(3)
	for range 5 {
		w.look()
	}
	w.have(3)
	// One that was killed by hand is made up for, though the cache does not show that either.
	i := w.instances()[0]
	w.must(w.kube.Delete(context.Background(), &i))
	w.gone(&i)
	w.look()
	w.have(3)
}

// TestACreateWhoseAnswerIsLost may have made the runner: it counts, though neither the pool nor the cache knows of it.
func TestACreateWhoseAnswerIsLost(t *testing.T) {
	w := newWorld(t, func(s *steading.RunnerPoolSpec) { s.MaxRunners = 2 })
	w.through(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			err := c.Create(ctx, o, opts...)
			if _, ok := o.(*forgejov1.RunnerInstance); ok && err == nil {
				return errBroken
			}
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if _, ok := l.(*forgejov1.RunnerInstanceList); ok {
				return nil // It never catches up.
			}
			return c.List(ctx, l, opts...)
		},
	})
	w.look()
	w.queue(5)
	for range 3 {
		w.looks()
		for range 2 { // What failed is tried again before there is another look.
			_, _ = w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: linux})
		}
	}
	w.have(2)
}

func TestARestartMakesNoSecondRunner(t *testing.T) {
	w := newWorld(t)
	w.queue(3)
	w.look()
	stale := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		if _, ok := l.(*forgejov1.RunnerInstanceList); ok {
			return nil
		}
		return c.List(ctx, l, opts...)
	}}
	w.through(stale)
	w.look()
	w.have(3)
}

// TestAServerThatFailsMakesNoRunner, whatever it answers, and no registration of a look that failed is swept.
func TestAServerThatFailsMakesNoRunner(t *testing.T) {
	for _, f := range []forgejo.Fault{
		{Route: forgejo.RouteJobs, Kind: forgejo.FaultUnavailable},
		{Route: forgejo.RouteJobs, Kind: forgejo.FaultHTML},
		{Route: forgejo.RouteJobs, Kind: forgejo.FaultTruncated},
		{Route: forgejo.RouteRunners, Kind: forgejo.FaultUnauthorized},
	} {
		t.Run(string(f.Kind), func(t *testing.T) {
			w := newWorld(t)
			w.look()
			w.queue(3)
			w.must(w.forgejo.SetFault(f))
			w.failedLook()
			w.have(0)
			r := w.get()
			if r.GetCondition(steading.ConditionQueueWatched).Status != corev1.ConditionFalse || r.GetCondition(xpv2.TypeReady).Status != corev1.ConditionFalse {
				t.Errorf("the conditions are %+v", r.Status.Conditions)
			}
			if p := r.Status.AtProvider.LastPoll; p == nil || p.Outcome != steading.PollFailed || p.Message == "" {
				t.Errorf("the last poll is %+v", p)
			}
			w.forgejo.UnsetFaults("", "")
			w.look()
			w.have(3)
			if r := w.get(); r.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue || r.GetCondition(xpv2.TypeReady).ObservedGeneration != 1 {
				t.Errorf("the conditions are %+v", r.Status.Conditions)
			}
		})
	}
}

// TestAListThatLeavesARunnerOut makes no second runner, and sweeps nothing (garm#834).
func TestAListThatLeavesARunnerOut(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	w.look()
	i := w.have(1)[0]
	w.register(&i)
	w.clock.Step(2 * time.Second)
	w.must(w.forgejo.SetFault(forgejo.Fault{Route: forgejo.RouteRunners, Kind: forgejo.FaultOmit, Runner: i.Status.AtProvider.Registration.ID}))
	w.look()
	w.have(1)
	if w.get().Status.AtProvider.Available != 1 {
		t.Error("it is not taken for available")
	}
}

// TestARunnerThatIsLostGivesWay once it was offline for long, unless it was the server that was away.
func TestARunnerThatIsLostGivesWay(t *testing.T) {
	w := newWorld(t, func(s *steading.RunnerPoolSpec) { s.MaxRunners = 1 })
	w.queue(1)
	w.look()
	i := w.have(1)[0]
	w.register(&i)
	i.Status.AtProvider.OnlineTime = new(metav1.NewTime(w.clock.Now()))
	w.must(w.kube.Status().Update(context.Background(), &i))
	looks := int(silent / (30 * time.Second))
	for range looks {
		w.look()
	}
	w.must(w.forgejo.SetFault(forgejo.Fault{Kind: forgejo.FaultUnavailable}))
	w.failedLook()
	w.forgejo.UnsetFaults("", forgejo.FaultUnavailable)
	for n := range looks + 1 {
		if w.have(1)[0].Spec.ForProvider.Drain {
			t.Fatalf("it is drained after %d looks", n)
		}
		w.look()
	}
	if !w.have(1)[0].Spec.ForProvider.Drain {
		t.Error("it holds the slot that a job waits for")
	}
	w.pass()
	if o := w.written().Status.AtProvider; o.Available != 0 {
		t.Errorf("%d are available", o.Available)
	}
}

func TestARunnerThatIsGoneIsMadeUpFor(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	w.look()
	i := w.have(1)[0]
	w.register(&i)
	w.look()
	w.must(w.session().Client().Deregister(context.Background(), i.Status.AtProvider.Registration.ID))
	w.look()
	w.have(2)
}

func TestSixFruitlessRunnersBackOff(t *testing.T) {
	w := newWorld(t, func(s *steading.RunnerPoolSpec) { s.FailedJobsHistoryLimit = 0 })
	w.queue(1)
	var waits []time.Duration
	for n := range 6 {
		w.look()
		var live *forgejov1.RunnerInstance
		for _, i := range w.instances() {
			if !judged(&i) {
				live = &i
			}
		}
		if live == nil {
			t.Fatalf("no runner is made for try %d", n)
		}
		w.judge(live, forgejov1.StartupTimeout)
		at := w.clock.Now()
		w.pass()
		w.tells("StartupTimeout")
		// A restart, and history that is gone, forget nothing.
		w.restart(w.kube)
		w.clock.Step(time.Second)
		w.look()
		w.gone(live)
		if n := len(w.instances()); n != 0 {
			t.Fatalf("%d runners while it backs off", n)
		}
		r := w.written()
		if c := r.GetCondition(steading.ConditionRunnersMade); c.Reason != steading.ReasonBackingOff || r.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue {
			t.Errorf("the conditions are %+v", r.Status.Conditions)
		}
		if c := r.GetCondition(steading.ConditionRunnersMade); !strings.Contains(c.Message, "the last one, "+live.Name+", is StartupTimeout") {
			t.Errorf("it does not say why the last one failed: %s", c.Message)
		}
		if len(r.Status.AtProvider.Reasons) != 1 || !strings.HasPrefix(r.Status.AtProvider.Reasons[0], "backing off until") {
			t.Errorf("the reasons are %v", r.Status.AtProvider.Reasons)
		}
		next := r.Status.AtProvider.NextTryTime
		waits = append(waits, next.Sub(at)/time.Second)
		w.clock.SetTime(next.Time)
	}
	if diff := cmp.Diff([]time.Duration{60, 120, 240, 480, 960, 960}, waits); diff != "" {
		t.Errorf("-want, +got seconds:\n%s", diff)
	}
	if o := w.get().Status; o.AtProvider.ConsecutiveFailures != 6 || o.Counted != 6 || len(o.AtProvider.Recent) != 6 {
		t.Errorf("%d failures, %d verdicts, %d recent", o.AtProvider.ConsecutiveFailures, o.Counted, len(o.AtProvider.Recent))
	}
	w.look()
	i := w.have(1)[0]
	w.judge(&i, forgejov1.RunnerConsumed)
	w.pass()
	if o := w.get().Status.AtProvider; o.ConsecutiveFailures != 0 || o.NextTryTime != nil {
		t.Errorf("one got through, and there are %d failures, next try at %v", o.ConsecutiveFailures, o.NextTryTime)
	}
}

// TestABurstThatFailsWaitsOnce: five runners that were made at once and fail one after the other wait as one does, over a
// restart too.
func TestABurstThatFailsWaitsOnce(t *testing.T) {
	w := newWorld(t)
	w.queue(5)
	w.look()
	burst := w.have(5)
	w.judge(&burst[0], forgejov1.StartupTimeout)
	at := w.clock.Now()
	w.pass()
	for _, i := range burst[1:] {
		w.clock.Step(3 * time.Second)
		w.judge(&i, forgejov1.StartupTimeout)
		w.restart(w.kube)
		w.pass()
	}
	o := w.written().Status.AtProvider
	if o.ConsecutiveFailures != 1 || o.NextTryTime == nil || o.NextTryTime.Sub(at) != time.Minute {
		t.Fatalf("%d failures, and the next try is at %v, %v after the first", o.ConsecutiveFailures, o.NextTryTime, at)
	}
	w.clock.SetTime(o.NextTryTime.Time)
	w.look()
	for _, i := range w.instances() {
		if !judged(&i) {
			w.judge(&i, forgejov1.StartupTimeout)
		}
	}
	at = w.clock.Now()
	w.pass()
	if o := w.written().Status.AtProvider; o.ConsecutiveFailures != 2 || o.NextTryTime == nil || o.NextTryTime.Sub(at) != 2*time.Minute {
		t.Errorf("the next burst fails too: %d failures, and the next try is at %v", o.ConsecutiveFailures, o.NextTryTime)
	}
}

// TestTheNextTryNeedsNoLook: what is missing is made as soon as the time is over.
func TestTheNextTryNeedsNoLook(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	w.look()
	i := w.have(1)[0]
	w.judge(&i, forgejov1.RunnerExited)
	res := w.look()
	if res.RequeueAfter <= 0 || res.RequeueAfter > 30*time.Second {
		t.Errorf("it is looked again after %s, and the next try is in 30 s", res.RequeueAfter)
	}
	w.have(1)
	w.clock.Step(res.RequeueAfter)
	w.pass()
	w.have(2)
}

// TestTheLastRunnersAreTold: a pass that sees the pool as it was before the last one leaves out none that ended then.
func TestTheLastRunnersAreTold(t *testing.T) {
	w := newWorld(t)
	w.queue(3)
	stale := w.get()
	w.through(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if r, ok := o.(*forgejov1.Runner); ok {
			stale.DeepCopyInto(r)
			return nil
		}
		return c.Get(ctx, k, o, opts...)
	}})
	w.look()
	for _, i := range w.have(3) {
		w.judge(&i, forgejov1.RunnerConsumed)
		w.pass()
	}
	if o := w.get().Status; o.Counted != 3 || len(o.AtProvider.Recent) != 3 {
		t.Errorf("of 3 runners that ended %d are counted and %d told", o.Counted, len(o.AtProvider.Recent))
	}
}

// TestAVerdictIsCountedOnce, wherever the provider ends.
func TestAVerdictIsCountedOnce(t *testing.T) {
	cases := map[string]struct {
		reason string
		broken func(w *world) interceptor.Funcs
	}{
		"StatusNotWritten": {reason: "it ends between the mark and the status", broken: func(*world) interceptor.Funcs {
			return interceptor.Funcs{SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
				return errBroken
			}}
		}},
		"MarkNotWritten": {reason: "it ends before the mark", broken: func(*world) interceptor.Funcs {
			return interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return errBroken
			}}
		}},
		"StaleCache": {reason: "the cache shows the record without its mark", broken: func(w *world) interceptor.Funcs {
			old := w.instances()
			return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
				if of, ok := l.(*forgejov1.RunnerInstanceList); ok {
					for _, i := range old {
						of.Items = append(of.Items, *i.DeepCopy())
					}
					return nil
				}
				return c.List(ctx, l, opts...)
			}}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.queue(1)
			w.look()
			i := w.have(1)[0]
			w.judge(&i, forgejov1.RunnerExited)
			w.through(tc.broken(w))
			for range 3 {
				_, _ = w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: linux})
			}
			w.restart(w.kube)
			w.look()
			if s := w.get().Status; s.AtProvider.ConsecutiveFailures != 1 || s.Counted != 1 {
				t.Errorf("%s: %d failures of %d verdicts", tc.reason, s.AtProvider.ConsecutiveFailures, s.Counted)
			}
		})
	}
}

func TestWhatKeepsRunnersFromBeingMadeIsSaid(t *testing.T) {
	cases := map[string]struct {
		edit   func(*steading.RunnerPoolSpec)
		spoil  func(*world)
		want   xpv2.ConditionReason
		says   string
		ready  corev1.ConditionStatus
		reason string
	}{
		"Suspended": {edit: func(s *steading.RunnerPoolSpec) { s.Suspend = true }, want: steading.ReasonSuspended, says: "spec.suspend", ready: corev1.ConditionTrue},
		"Schedule": {edit: func(s *steading.RunnerPoolSpec) {
			s.Schedule = []steading.ScheduledMinimum{{Start: "at eight", DurationSeconds: 60}}
		}, want: steading.ReasonScheduleRefused, says: "spec.schedule[0]", ready: corev1.ConditionFalse},
		"Image":    {edit: func(s *steading.RunnerPoolSpec) { s.Pod.RunnerImage = "" }, want: steading.ReasonRunnerImageMissing, says: "spec.pod.runnerImage", ready: corev1.ConditionFalse},
		"Guard":    {spoil: func(w *world) { w.guard.err = errBroken }, want: steading.ReasonGuardRailsNotWritten, says: "broken", ready: corev1.ConditionFalse},
		"Refused":  {spoil: func(w *world) { w.guard.err = refusedNamespaceError{} }, want: steading.ReasonJobNamespaceRefused, says: "not for you", ready: corev1.ConditionFalse},
		"Template": {spoil: func(w *world) { w.r.check = func(forgejov1.RunnerConfig, map[string]string) error { return errBroken } }, want: steading.ReasonTemplateRefused, says: "broken", ready: corev1.ConditionFalse},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			edit := tc.edit
			if edit == nil {
				edit = func(*steading.RunnerPoolSpec) {}
			}
			w := newWorld(t, edit)
			if tc.spoil != nil {
				tc.spoil(w)
			}
			w.queue(1)
			w.look()
			w.have(0)
			r := w.written()
			if c := r.GetCondition(steading.ConditionRunnersMade); c.Status != corev1.ConditionFalse || c.Reason != tc.want || !strings.Contains(c.Message, tc.says) {
				t.Errorf("RunnersMade is %+v", c)
			}
			if c := r.GetCondition(xpv2.TypeReady); c.Status != tc.ready {
				t.Errorf("Ready is %+v", c)
			}
			if len(r.Status.AtProvider.Reasons) != 1 || !strings.Contains(r.Status.AtProvider.Reasons[0], "1 job waits") {
				t.Errorf("the reasons are %v", r.Status.AtProvider.Reasons)
			}
		})
	}
}

type refusedNamespaceError struct{}

func (refusedNamespaceError) Error() string                { return "not for you" }
func (refusedNamespaceError) Reason() xpv2.ConditionReason { return steading.ReasonJobNamespaceRefused }

type refusedTemplateError struct{}

func (refusedTemplateError) Error() string                { return "spec.vm.template: unknown field" }
func (refusedTemplateError) Reason() xpv2.ConditionReason { return steading.ReasonTemplateRefused }

// TestATemplateIsTriedBeforeRunnersAreMade, until the API server takes it, and then not again before the settings change. That it
// is not allowed is tried again soon: the right may have been given a moment ago.
func TestATemplateIsTriedBeforeRunnersAreMade(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	for _, tc := range []struct {
		err  error
		want xpv2.ConditionReason
	}{
		{errBroken, steading.ReasonGuardRailsNotWritten},
		{refusedTemplateError{}, steading.ReasonTemplateRefused},
	} {
		w.trial.err = tc.err
		after := w.look().RequeueAfter
		w.have(0)
		if after > again {
			t.Errorf("it is tried again in %s", after)
		}
		if c := w.written().GetCondition(steading.ConditionRunnersMade); c.Reason != tc.want || c.Message != tc.err.Error() {
			t.Errorf("RunnersMade is %+v", c)
		}
	}
	w.trial.err = nil
	w.pass()
	w.have(1)
	before := w.trial.tried
	w.look()
	w.look()
	if w.trial.tried != before {
		t.Error("what is taken is tried with each look")
	}
	w.edit(func(s *steading.RunnerPoolSpec) { s.MaxRunners = 20 })
	w.pass()
	if w.trial.tried != before+1 {
		t.Errorf("after an edit it is tried %d times", w.trial.tried-before)
	}
}

func TestTheOperatorsImageIsTaken(t *testing.T) {
	w := newWorld(t, func(s *steading.RunnerPoolSpec) { s.Pod.RunnerImage = "" })
	config := &forgejov1.ClusterProviderConfig{}
	w.must(w.kube.Get(context.Background(), client.ObjectKey{Name: names.DefaultProviderConfig}, config))
	config.Spec.RunnerImage = "operator:1"
	w.must(w.kube.Update(context.Background(), config))
	w.queue(1)
	w.look()
	if image := w.have(1)[0].Spec.ForProvider.Config.Pod.RunnerImage; image != "operator:1" {
		t.Errorf("the image is %q", image)
	}
}

func TestAnEditDrainsWhatItMust(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	w.look()
	w.edit(func(s *steading.RunnerPoolSpec) { s.MaxRunners = 20 })
	w.pass()
	if w.have(1)[0].Spec.ForProvider.Drain {
		t.Error("another maximum drains it")
	}
	w.edit(func(s *steading.RunnerPoolSpec) { s.Pod.RunnerImage = "runner:13" })
	w.pass()
	if !w.have(1)[0].Spec.ForProvider.Drain {
		t.Error("another image does not drain it")
	}
	w.look()
	w.have(2)
}

// TestAnEditAsksForALook: it does not take the interval until it counts.
func TestAnEditAsksForALook(t *testing.T) {
	w := newWorld(t, func(s *steading.RunnerPoolSpec) { s.PollIntervalSeconds = 3600 })
	w.look()
	w.edit(func(s *steading.RunnerPoolSpec) { s.MinRunners = 2 })
	w.pass()
	w.have(0)
	w.clock.Step(2 * time.Second)
	w.until("the server is looked at", func() bool {
		l, ok := w.session().Look()
		return ok && l.Number > w.looked
	})
	w.pass()
	w.have(2)
}

func TestHistoryIsDeletedBeyondItsLimits(t *testing.T) {
	w := newWorld(t, func(s *steading.RunnerPoolSpec) { s.SuccessfulJobsHistoryLimit = 1 })
	w.queue(2)
	w.look()
	for n, i := range w.have(2) {
		w.clock.Step(time.Duration(n+1) * time.Second)
		w.judge(&i, forgejov1.RunnerConsumed)
	}
	w.clock.Step(time.Second)
	w.look()
	deleted := 0
	for _, i := range w.instances() {
		if i.DeletionTimestamp != nil {
			deleted++
		}
	}
	if deleted != 1 {
		t.Errorf("%d of 2 are deleted, at a limit of 1", deleted)
	}
}

// TestSweep takes what is this pool's and no record accounts for, and nothing else.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	w.look()
	i := w.have(1)[0]
	w.register(&i)
	others := map[string]string{
		"a person's":          "runs on my laptop",
		"another pool's":      names.RegistrationMark("other", "acme-mac-00000001"),
		"this pool's, of old": names.RegistrationMark("xr", "acme-linux-00000000"),
	}
	for name, description := range others {
		_, err := w.session().Client().Register(context.Background(), name, description)
		w.must(err)
	}
	labels := func(runner, uid string) map[string]string {
		return map[string]string{names.LabelPool: "acme-linux", names.LabelRunner: runner, names.LabelComposite: uid}
	}
	for _, o := range []client.Object{
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-ci", Name: "orphan", UID: "1", Labels: labels("acme-linux-00000000", "xr")}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-ci", Name: "orphan", UID: "2", Labels: labels("acme-linux-00000000", "xr")}},
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-ci", Name: "kept", UID: "3", Labels: labels(i.Name, "xr")}},
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-ci", Name: "another", UID: "4", Labels: labels("acme-linux-00000000", "other")}},
	} {
		w.must(w.kube.Create(context.Background(), o))
	}
	w.clock.Step(sweeping)
	w.look()
	var left []string
	for _, r := range w.forgejo.Registrations() {
		if r.Deleted.IsZero() {
			left = append(left, r.Name)
		}
	}
	if len(left) != 3 {
		t.Errorf("the registrations %v are left", left)
	}
	for _, name := range left {
		if name == "this pool's, of old" {
			t.Error("what is left over of this pool is not swept")
		}
	}
	jobs, secrets := &batchv1.JobList{}, &corev1.SecretList{}
	w.must(w.kube.List(context.Background(), jobs, client.InNamespace("acme-ci")))
	w.must(w.kube.List(context.Background(), secrets, client.InNamespace("acme-ci")))
	if len(jobs.Items) != 2 || len(secrets.Items) != 0 {
		t.Errorf("%d jobs and %d Secrets are left", len(jobs.Items), len(secrets.Items))
	}
}

// TestWhatCannotBeSweptKeepsNothingElse: neither other registrations nor what is in the job namespace, nor that runners are made.
func TestWhatCannotBeSweptKeepsNothingElse(t *testing.T) {
	w := newWorld(t)
	w.look()
	for _, name := range []string{"acme-linux-00000001", "acme-linux-00000002"} {
		_, err := w.session().Client().Register(context.Background(), name, names.RegistrationMark("xr", name))
		w.must(err)
	}
	orphan := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-ci", Name: "orphan", UID: "1", Labels: map[string]string{
		names.LabelPool: "acme-linux", names.LabelRunner: "acme-linux-00000001", names.LabelComposite: "xr",
	}}}
	w.must(w.kube.Create(context.Background(), orphan))
	w.queue(1)
	w.must(w.forgejo.SetFault(forgejo.Fault{Route: forgejo.RouteDeregister, Kind: forgejo.FaultUnavailable, Times: 1}))
	w.clock.Step(sweeping)
	w.looks()
	if _, err := w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: linux}); err == nil || !strings.Contains(err.Error(), "cannot sweep the registration of runner acme-linux-00000001") {
		t.Errorf("error %v", err)
	}
	var left []string
	for _, r := range w.forgejo.Registrations() {
		if r.Deleted.IsZero() {
			left = append(left, r.Name)
		}
	}
	if diff := cmp.Diff([]string{"acme-linux-00000001"}, left); diff != "" {
		t.Errorf("registrations: -want, +got:\n%s", diff)
	}
	if err := w.kube.Get(context.Background(), client.ObjectKeyFromObject(orphan), orphan); !kerrors.IsNotFound(err) {
		t.Errorf("the Secret is left: %v", err)
	}
	w.have(1)
	r := w.get()
	if c := r.GetCondition(xpv2.TypeSynced); c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, "cannot sweep") {
		t.Errorf("Synced is %+v", c)
	}
	made := r.GetCondition(steading.ConditionRunnersMade)
	if made.Status != corev1.ConditionTrue || !strings.Contains(made.Message, "cannot sweep") || r.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue {
		t.Errorf("the conditions are %+v", r.Status.Conditions)
	}
	w.pass() // What failed is tried again.
	for _, r := range w.forgejo.Registrations() {
		if r.Deleted.IsZero() {
			t.Errorf("the registration %s is left", r.Name)
		}
	}
}

// TestAFormerNamespaceIsSwept until nothing of the pool is left there, over a restart too.
func TestAFormerNamespaceIsSwept(t *testing.T) {
	w := newWorld(t)
	w.look()
	w.edit(func(s *steading.RunnerPoolSpec) { s.JobNamespace = "acme-new" })
	w.must(w.kube.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-new", Labels: map[string]string{names.LabelRunnersFor: "acme"}}}))
	w.pass()
	if diff := cmp.Diff([]string{"acme-ci", "acme-new"}, w.get().Status.Namespaces); diff != "" {
		t.Errorf("namespaces: -want, +got:\n%s", diff)
	}
	w.restart(w.kube)
	w.look() // It is swept for the first time.
	left := func(uid string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-ci", Name: "orphan-" + uid, UID: "1", Labels: map[string]string{
			names.LabelPool: "acme-linux", names.LabelRunner: "acme-linux-00000000", names.LabelComposite: uid,
		}}}
	}
	if all := w.get().Status.Namespaces; len(all) != 1 {
		t.Fatalf("nothing is left in acme-ci, and the namespaces are %v", all)
	}

	w.edit(func(s *steading.RunnerPoolSpec) { s.JobNamespace = "acme-ci" })
	w.pass()
	w.edit(func(s *steading.RunnerPoolSpec) { s.JobNamespace = "acme-new" })
	w.must(w.kube.Create(context.Background(), left("xr")))
	w.must(w.kube.Create(context.Background(), left("other")))
	w.pass()
	for n, want := range [][]string{{"acme-ci", "acme-new"}, {"acme-new"}} {
		w.clock.Step(sweeping)
		w.pass()
		w.written()
		if diff := cmp.Diff(want, w.get().Status.Namespaces); diff != "" {
			t.Errorf("after sweep %d: -want, +got:\n%s", n+1, diff)
		}
	}
	secrets := &corev1.SecretList{}
	w.must(w.kube.List(context.Background(), secrets, client.InNamespace("acme-ci")))
	if len(secrets.Items) != 1 || secrets.Items[0].Name != "orphan-other" {
		t.Errorf("%d Secrets are left", len(secrets.Items))
	}
}

func TestATokenThatIsGoneStopsNewRunnersOnly(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	w.look()
	w.must(w.kube.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "forgejo-pat"}}))
	w.r.memories.of(linux).token.Store(true) // The watch tells.
	w.queue(1)
	w.look()
	w.have(1)
	if c := w.get().GetCondition(steading.ConditionQueueWatched); c.Reason != steading.ReasonTokenMissing {
		t.Errorf("QueueWatched is %+v", c)
	}
	if w.session().Poll().Outcome != steading.PollSucceeded {
		t.Error("what becomes of the runners that are out is not watched any more")
	}
}

// TestATokenThatIsReplacedIsTriedAtOnce, where runners could not be made by the one before: they may have been refused for it. What
// another token cannot have mended waits, and so does a Secret that has the same token still.
func TestATokenThatIsReplacedIsTriedAtOnce(t *testing.T) {
	cases := map[string]struct {
		reason forgejov1.RunnerReason
		same   bool
		want   bool
	}{
		"Refused":    {reason: forgejov1.CreateFailed, want: true},
		"NotStarted": {reason: forgejov1.StartupTimeout},
		"SameToken":  {reason: forgejov1.CreateFailed, same: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.queue(1)
			w.look()
			i := w.have(1)[0]
			w.judge(&i, tc.reason)
			w.pass()
			waits := w.written()
			w.have(1)
			if waits.Status.AtProvider.NextTryTime == nil {
				t.Fatal("it does not back off")
			}
			if !tc.same {
				w.replaceToken()
				w.looked = 0
			}
			w.r.memories.of(linux).token.Store(true) // The watch tells.
			w.look()
			if made := len(w.instances()) == 2; made != tc.want {
				t.Errorf("another runner is made: %t, want %t", made, tc.want)
			}
			if o := w.get().Status.AtProvider; o.ConsecutiveFailures != 1 || (o.NextTryTime == nil) != tc.want {
				t.Errorf("%d failures, and the next try is at %v", o.ConsecutiveFailures, o.NextTryTime)
			}
			// The cache shows what was written before.
			stale := w.get()
			stale.Status = waits.Status
			w.must(w.kube.Status().Update(context.Background(), stale))
			if gated := w.written().GetCondition(steading.ConditionRunnersMade).Reason == steading.ReasonBackingOff; gated == tc.want {
				t.Errorf("it backs off: %t", gated)
			}
		})
	}
}

func TestAPoolGoesAfterItsRunners(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.look()
	w.have(2)
	w.must(w.kube.Delete(context.Background(), w.get()))
	w.pass()
	for _, i := range w.have(2) {
		if i.DeletionTimestamp == nil {
			t.Errorf("%s is not deleted", i.Name)
		}
	}
	if len(w.guard.released) > 0 || w.isGone() {
		t.Fatal("it goes before its runners")
	}
	if c := w.get().GetCondition(xpv2.TypeReady); c.Reason != xpv2.ReasonDeleting || !strings.Contains(c.Message, "waiting until the runners") {
		t.Errorf("Ready is %+v", c)
	}
	for _, i := range w.instances() {
		w.gone(&i)
	}
	w.pass()
	if !w.isGone() || len(w.guard.released) != 1 {
		t.Errorf("gone: %t, released: %v", w.isGone(), w.guard.released)
	}
	if len(w.r.memories.all) != 0 {
		t.Error("it is remembered")
	}
}

// TestAPoolGoesWithoutItsServer, its token or its job namespace (ARC#4655, #4484).
func TestAPoolGoesWithoutItsServer(t *testing.T) {
	w := newWorld(t)
	w.look()
	w.must(w.forgejo.SetFault(forgejo.Fault{Kind: forgejo.FaultUnavailable}))
	w.must(w.kube.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-acme", Name: "forgejo-pat"}}))
	w.must(w.kube.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme-ci"}}))
	w.restart(w.kube)
	w.must(w.kube.Delete(context.Background(), w.get()))
	w.pass()
	if !w.isGone() {
		t.Error("it does not go")
	}
}

func TestAPoolThatTakesLongToGoSaysWhatItWaitsFor(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	w.look()
	claim := &steading.RunnerPool{}
	key := client.ObjectKey{Namespace: "tenant-acme", Name: "linux"}
	w.must(w.kube.Get(context.Background(), key, claim))
	claim.Finalizers = []string{"x"}
	w.must(w.kube.Update(context.Background(), claim))
	w.must(w.kube.Delete(context.Background(), claim))
	w.must(w.kube.Delete(context.Background(), w.get()))
	phase := func() steading.RunnerPoolPhase {
		w.must(w.kube.Get(context.Background(), key, claim))
		return claim.Status.Phase
	}
	w.clock.SetTime(w.get().DeletionTimestamp.Time)
	w.pass()
	if phase() != steading.RunnerPoolDeleting {
		t.Errorf("the phase is %s", phase())
	}
	w.clock.Step(patience)
	w.pass()
	if phase() != steading.RunnerPoolDeletionBlocked || !strings.Contains(claim.Status.Message, w.instances()[0].Name) {
		t.Errorf("the phase is %s: %s", phase(), claim.Status.Message)
	}
}

func TestStatusIsWrittenSeldom(t *testing.T) {
	w := newWorld(t)
	writes := 0
	w.through(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		writes++
		return c.SubResource(sub).Update(ctx, o, opts...)
	}})
	w.queue(3)
	w.look()
	writes = 0
	for _, i := range w.have(3) {
		w.register(&i)
		w.pass()
	}
	if writes > 0 {
		t.Errorf("%d writes within two seconds", writes)
	}
	w.clock.Step(seldom)
	if res := w.pass(); writes != 1 || res.RequeueAfter < time.Minute {
		t.Errorf("%d writes, and the next pass in %s", writes, res.RequeueAfter)
	}
	w.clock.Step(seldom)
	w.pass()
	if writes != 1 {
		t.Errorf("%d writes though nothing changed", writes)
	}
}

// TestAChangeUnderneathLosesNoStatus has the pool changed between the pass's read and its write, as a new composition does.
func TestAChangeUnderneathLosesNoStatus(t *testing.T) {
	w := newWorld(t)
	changes := 0
	w.through(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		if r, ok := o.(*forgejov1.Runner); ok && changes == 0 {
			changes++
			changed := &forgejov1.Runner{}
			w.must(c.Get(ctx, client.ObjectKeyFromObject(r), changed))
			changed.Labels = map[string]string{"composed": "anew"}
			w.must(c.Update(ctx, changed))
		}
		return c.SubResource(sub).Update(ctx, o, opts...)
	}})
	w.queue(1)
	w.look()
	if changes != 1 {
		t.Fatalf("the pool was changed %d times", changes)
	}
	if r := w.get(); r.GetCondition(xpv2.TypeSynced).Status != corev1.ConditionTrue || r.Status.AtProvider.LastPoll == nil || r.Labels["composed"] != "anew" {
		t.Errorf("labels %v, status %+v", r.Labels, r.Status)
	}
}

func TestAFailedCreateIsMadeUpForByAnotherLook(t *testing.T) {
	w := newWorld(t)
	broken := true
	w.through(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if _, ok := o.(*forgejov1.RunnerInstance); ok && broken {
			return errBroken
		}
		return c.Create(ctx, o, opts...)
	}})
	w.look()
	w.queue(2)
	w.looks()
	if _, err := w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: linux}); err == nil || !strings.Contains(err.Error(), "2 of 2 runners") {
		t.Fatalf("error %v", err)
	}
	if c := w.get().GetCondition(xpv2.TypeSynced); c.Status != corev1.ConditionFalse {
		t.Errorf("Synced is %+v", c)
	}
	broken = false
	w.look()
	w.have(2)
}
