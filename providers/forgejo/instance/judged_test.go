package instance

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

// TestVerdictsOnRunners tells what happens to runners, and what becomes of them.
func TestVerdictsOnRunners(t *testing.T) {
	cases := map[string]struct {
		reason  string
		story   func(*world)
		want    v1alpha1.RunnerReason
		message string
		// stopped is whether what ran had to be.
		stopped bool
	}{
		"RegistrationLost": {
			reason: "somebody deleted it before it came up",
			story: func(w *world) {
				w.runner()
				w.converge()
				must(w.t, w.forgejo.DeleteRunner(w.registrations()[0].ID))
				w.later(time.Second)
				w.later(10 * time.Second)
			},
			want: v1alpha1.RegistrationLost, message: "its registration was deleted before the server had ever heard of it", stopped: true,
		},
		"ShortJob": {
			reason: "it came, took its job and was gone between two looks",
			story: func(w *world) {
				w.runner()
				w.converge()
				w.look()
				w.podRuns()
				w.connect()
				w.report(w.take(), "RESULT_SUCCESS")
				w.later(time.Second)
				w.podEnds(0)
				w.converge()
			},
			want: v1alpha1.RunnerConsumed, message: "it took a job and reported it",
		},
		"RunnerExited": {
			reason:  "it crashed before it took a job",
			story:   func(w *world) { w.ready(); w.podEnds(1); w.converge() },
			want:    v1alpha1.RunnerExited,
			message: "it ended without having reported a job: it ended with exit code 1",
		},
		"JobCancelled": {
			reason: "the only job that it could take was cancelled before it came (actions-runner-controller#4091)",
			story: func(w *world) {
				job := w.targeted()
				must(w.t, w.forgejo.Cancel(job))
				w.podEnds(2)
				w.converge()
			},
			want: v1alpha1.JobGone, message: "job 7 was cancelled, or another runner was through with it, before this one could take it",
		},
		"JobStolen": {
			reason: "a spare took the only job that it could take",
			story: func(w *world) {
				w.targeted()
				thief := w.steal()
				w.podEnds(2)
				w.converge()
				must(w.t, w.forgejo.DeleteRunner(thief))
			},
			want: v1alpha1.JobGone, message: "job 7 was taken by another runner before this one could",
		},
		"JobWaits": {
			reason: "it crashed, and its job waits still",
			story: func(w *world) {
				w.targeted()
				w.podEnds(2)
				w.converge()
			},
			want: v1alpha1.RunnerExited, message: "it ended without having reported a job: it ended with exit code 2",
		},
		"JobUnknown": {
			reason: "while the queue cannot be read there is no verdict, and then there is the right one",
			story: func(w *world) {
				w.targeted()
				must(w.t, w.forgejo.SetFault(forgejo.Fault{Route: forgejo.RouteJobs, Kind: forgejo.FaultHTML}))
				w.podEnds(2)
				for range 3 {
					_, _ = w.reconcile()
				}
				if st := w.status(); st.Reason != "" {
					w.t.Errorf("the queue cannot be read, and it is judged %s", st.Reason)
				}
				w.forgejo.UnsetFaults("", "")
				w.converge()
			},
			want: v1alpha1.RunnerExited, message: "it ended without having reported a job: it ended with exit code 2",
		},
		"JobDeleted": {
			reason: "its Job was deleted by hand (actions-runner-controller#4203)",
			story: func(w *world) {
				w.ready()
				must(w.t, w.Delete(w.t.Context(), w.job()))
				w.converge()
			},
			want: v1alpha1.RunnerExited, message: "it ended without having reported a job: what it ran in was deleted",
		},
		"OthersJob": {
			reason: "somebody made another Job of its name, which is not its own",
			story: func(w *world) {
				w.ready()
				other := w.job()
				must(w.t, w.Delete(w.t.Context(), w.job()))
				other.ResourceVersion = ""
				must(w.t, w.Create(w.t.Context(), other))
				w.converge()
			},
			want: v1alpha1.RunnerExited, message: "it ended without having reported a job: what it ran in was deleted",
		},
		"RunnerLost": {
			reason: "it died with a job in hand: the server goes on to list it",
			story: func(w *world) {
				w.ready()
				w.take()
				w.later(time.Second)
				w.podEnds(137)
				w.converge()
				if st := w.status(); st.Reason != "" {
					w.t.Errorf("its last report may be under way: %s", st.Reason)
				}
				w.later(10 * time.Second)
			},
			want: v1alpha1.RunnerLost, message: "it ended with a job in hand: it ended with exit code 137",
		},
		"LastReport": {
			reason: "its last report arrives after its pod was seen to have ended",
			story: func(w *world) {
				w.ready()
				task := w.take()
				w.later(time.Second)
				w.podEnds(0)
				w.converge()
				w.report(task, "RESULT_SUCCESS")
				w.later(10 * time.Second)
			},
			want: v1alpha1.RunnerConsumed, message: "it took a job and reported it",
		},
		"JobTimeout": {
			reason: "it is wedged, and stopped (actions-runner-controller#4307)",
			story: func(w *world) {
				w.ready(func(mg *v1alpha1.RunnerInstance) { mg.Spec.ForProvider.Config.JobTimeoutSeconds = 120 })
				w.take()
				w.later(time.Second)
				w.later(2 * time.Minute)
			},
			want: v1alpha1.JobTimeout, message: "it had its job for longer than jobTimeoutSeconds, 120", stopped: true,
		},
		"JobTakenLate": {
			reason: "the time of its job begins when it takes it, however long it waited for one",
			story: func(w *world) {
				w.ready(func(mg *v1alpha1.RunnerInstance) { mg.Spec.ForProvider.Config.JobTimeoutSeconds = 3600 })
				w.later(59*time.Minute - time.Second)
				w.connect()
				task := w.take()
				w.later(time.Second)
				for range 29 {
					w.report(task, "RESULT_UNSPECIFIED")
					w.later(2 * time.Minute)
				}
				w.report(task, "RESULT_UNSPECIFIED")
				w.later(2*time.Minute - time.Second)
				if st := w.status(); st.Reason != "" {
					w.t.Errorf("it has had its job for less than an hour: %s", st.Reason)
				}
				w.later(time.Second)
			},
			want: v1alpha1.JobTimeout, message: "it had its job for longer than jobTimeoutSeconds, 3600", stopped: true,
		},
		"JobTakenAtTheEnd": {
			reason: "it took a job right before its time was over, and the server calls it idle still: the job is its own",
			story: func(w *world) {
				w.ready()
				w.later(59*time.Minute + 50*time.Second)
				w.connect()
				w.clock.Step(8*time.Second + 900*time.Millisecond)
				task := w.fetch()
				w.later(100 * time.Millisecond)
				w.report(task, "RESULT_UNSPECIFIED")
				w.later(time.Second)
				if st := w.status(); st.Reason != "" || st.State != v1alpha1.StateActive {
					w.t.Fatalf("it is %s and judged %q", st.State, st.Reason)
				}
				w.report(task, "RESULT_SUCCESS")
				w.later(time.Second)
				w.podEnds(0)
				w.converge()
			},
			want: v1alpha1.RunnerConsumed, message: "it took a job and reported it",
		},
		"NoJobInTime": {
			reason: "it says twice that it is idle, when its time is over",
			story: func(w *world) {
				w.ready()
				w.later(time.Hour)
				w.connect()
				w.later(11 * time.Second)
				if st := w.status(); st.Reason != "" {
					w.t.Errorf("it may have taken a job: %s", st.Reason)
				}
				w.later(time.Second)
			},
			want: v1alpha1.JobTimeout, message: "it lived longer than jobTimeoutSeconds, 3600, without a job", stopped: true,
		},
		"NeverCertain": {
			reason: "others take jobs all the time that it could have taken, for as long as it may have had the last of them",
			story: func(w *world) {
				w.ready()
				for range 9 {
					w.clock.Step(12 * time.Minute)
					w.othersTakeAJob()
					w.later(0)
					if st := w.status(); st.Reason != "" {
						w.t.Fatalf("it may have a job: %s", st.Reason)
					}
				}
				w.later(12 * time.Minute)
			},
			want: v1alpha1.JobTimeout, message: "it lived longer than jobTimeoutSeconds, 3600, without a job", stopped: true,
		},
		"StartupTimeout": {
			reason: "its image cannot be pulled (actions-runner-controller#4654)",
			story: func(w *world) {
				w.runner()
				w.converge()
				w.pod(corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}})
				w.later(time.Second)
				if st := w.status(); st.Message != "container job: cannot pull image node:22: not found" {
					w.t.Errorf("until then it says what it waits for: %q", st.Message)
				}
				w.later(10 * time.Minute)
			},
			want:    v1alpha1.StartupTimeout,
			message: "the server has not heard of it within startupTimeoutSeconds, 600: container job: cannot pull image node:22: not found", stopped: true,
		},
		"NoPod": {
			reason: "a quota lets no pod in, which the Job tells by an event",
			story: func(w *world) {
				w.runner()
				w.converge()
				must(w.t, w.Create(w.t.Context(), &corev1.Event{
					ObjectMeta:     metav1.ObjectMeta{Namespace: "acme-ci", Name: "e"},
					InvolvedObject: corev1.ObjectReference{Kind: "Job", Name: name}, Reason: "FailedCreate", Message: "exceeded quota: limits",
				}))
				w.later(10 * time.Minute)
			},
			want:    v1alpha1.StartupTimeout,
			message: "the server has not heard of it within startupTimeoutSeconds, 600: exceeded quota: limits", stopped: true,
		},
		"CredentialsLost": {
			reason: "its Secret was deleted before its pod had read it",
			story: func(w *world) {
				w.runner()
				w.converge()
				must(w.t, w.Delete(w.t.Context(), w.secret()))
				w.later(recheck)
			},
			want: v1alpha1.CredentialsLost, message: "the Secret with its credential was deleted before it had started", stopped: true,
		},
		"DrainedAsItTakesAJob": {
			reason: "it took a job right before it is asked the second time, and the server calls it idle still: the job is its own",
			story: func(w *world) {
				w.ready()
				w.drain()
				w.converge()
				w.connect()
				w.clock.Step(11*time.Second + 900*time.Millisecond)
				task := w.fetch()
				w.later(100 * time.Millisecond)
				if st := w.status(); st.State != v1alpha1.StateIdle || st.Reason != "" {
					w.t.Fatalf("it is %s and judged %q", st.State, st.Reason)
				}
				w.report(task, "RESULT_UNSPECIFIED")
				w.later(time.Second)
				w.report(task, "RESULT_SUCCESS")
				w.later(time.Second)
				w.podEnds(0)
				w.converge()
			},
			want: v1alpha1.RunnerConsumed, message: "it took a job and reported it",
		},
		"DrainedUnregistered": {
			reason: "its pool changed its mind at once",
			story:  func(w *world) { w.runner(); w.drain(); w.converge() },
			want:   v1alpha1.Drained, message: "its pool did not want it any more before it was registered",
		},
		"DrainedUnseen": {
			reason: "nobody ever saw it, so it has no job",
			story:  func(w *world) { w.runner(); w.converge(); w.drain(); w.converge() },
			want:   v1alpha1.Drained, message: "its pool did not want it any more", stopped: true,
		},
		"DrainedIdle": {
			reason: "it says twice that it is idle",
			story: func(w *world) {
				w.ready()
				w.drain()
				w.converge()
				w.connect()
				w.later(11 * time.Second)
				if st := w.status(); st.Reason != "" {
					w.t.Errorf("it may have taken a job: %s", st.Reason)
				}
				w.later(time.Second)
			},
			want: v1alpha1.Drained, message: "its pool did not want it any more", stopped: true,
		},
		"DrainedTooLate": {
			reason: "it took a job before it could be drained, and finishes it",
			story: func(w *world) {
				w.ready()
				w.drain()
				w.converge()
				task := w.take()
				w.later(6 * time.Second)
				w.later(time.Minute)
				if st := w.status(); st.Reason != "" {
					w.t.Errorf("it has a job in hand, though it has been silent for a while: %s", st.Reason)
				}
				w.report(task, "RESULT_SUCCESS")
				w.podEnds(0)
				w.later(time.Second)
			},
			want: v1alpha1.RunnerConsumed, message: "it took a job and reported it",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.story(w)
			st := w.status()
			if st.Reason != tc.want || st.Message != tc.message {
				t.Fatalf("%s: %q, %q, want %q, %q", tc.reason, st.Reason, st.Message, tc.want, tc.message)
			}
			w.later(grace)
			if stopped := slices.Contains(w.calls, "patch Job"); stopped != tc.stopped {
				t.Errorf("%s: stopped: %t, want %t: %v", tc.reason, stopped, tc.stopped, w.calls)
			}
			if r := w.registrations(); len(r) > 0 || w.secret() != nil {
				t.Errorf("%s: left are %+v and %v", tc.reason, r, w.secret())
			}
			w.killPods()
			w.converge()
			if !w.status().Released {
				t.Errorf("%s: it holds its slot: %+v", tc.reason, w.status())
			}
			if j := w.job(); tc.stopped && j == nil {
				t.Errorf("%s: its Job is history, and was deleted", tc.reason)
			}
		})
	}
}

// TestALogIsKept: a kubelet says that a container ended before its pod has, and a Job that is suspended then deletes the pod.
func TestALogIsKept(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.pod(corev1.PodRunning, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, StartedAt: metav1.NewTime(w.clock.Now())}})
	if again := w.converge(); again > grace {
		t.Errorf("it is looked at again in %s", again)
	}
	if st := w.status(); st.Reason != v1alpha1.RunnerExited || st.Released {
		t.Fatalf("it ended, and its pod did not: %+v", st)
	}
	w.clock.Step(grace - time.Second)
	w.converge()
	if slices.Contains(w.calls, "patch Job") {
		t.Error("it was stopped while it ended")
	}
	w.clock.Step(time.Second)
	w.converge()
	if !slices.Contains(w.calls, "patch Job") {
		t.Error("a container beside it may run on, and was not stopped")
	}
}

// TestAJobThatIsOverIsWaitedFor: while the Job controller is away its pods have ended and it does not say so. Stopping it would only
// make it a suspended one, whose slot is free while it seems to run.
func TestAJobThatIsOverIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.pod(corev1.PodFailed, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, StartedAt: metav1.NewTime(w.clock.Now())}})
	w.converge()
	w.clock.Step(2 * grace)
	w.converge()
	if st := w.status(); st.Reason != v1alpha1.RunnerExited || st.Released || slices.Contains(w.calls, "patch Job") {
		t.Errorf("calls %q, status %+v", w.calls, st)
	}
}

// othersTakeAJob that the runner could have taken, and are not there any more.
func (w *world) othersTakeAJob() {
	w.t.Helper()
	_, err := w.forgejo.Queue(forgejo.NewJob{Repository: "root/web", Labels: []string{"docker"}})
	must(w.t, err)
	must(w.t, w.forgejo.DeleteRunner(w.steal()))
}

// killPods is what the Job's controller does when a Job is suspended.
func (w *world) killPods() {
	w.t.Helper()
	l := &corev1.PodList{}
	must(w.t, w.List(w.t.Context(), l))
	for i := range l.Items {
		must(w.t, w.Delete(w.t.Context(), &l.Items[i]))
	}
}

// TestNoAnswerIsNoVerdict: whatever is wrong with the server, and whatever suggests a verdict, there is none until it answers
// (actions-runner-controller#3953, garm#834).
func TestNoAnswerIsNoVerdict(t *testing.T) {
	faults := map[string]forgejo.Fault{
		"Unavailable":  {Kind: forgejo.FaultUnavailable},
		"TooMany":      {Kind: forgejo.FaultUnavailable, Status: 429},
		"Page":         {Kind: forgejo.FaultHTML},
		"NoPage":       {Kind: forgejo.FaultHTML, Status: 404},
		"Unauthorized": {Kind: forgejo.FaultUnauthorized},
		"Forbidden":    {Kind: forgejo.FaultForbidden},
		"Redirect":     {Kind: forgejo.FaultRedirect},
		"Truncated":    {Kind: forgejo.FaultTruncated},
		"Lost":         {Kind: forgejo.FaultLost},
	}
	stories := map[string]struct {
		before, then func(*world)
		want         v1alpha1.RunnerReason
	}{
		"Consumed": {
			before: func(w *world) { w.ready(); w.report(w.take(), "RESULT_SUCCESS"); w.podEnds(0) },
			then:   func(w *world) { w.later(time.Second) }, want: v1alpha1.RunnerConsumed,
		},
		"Exited":  {before: func(w *world) { w.ready(); w.podEnds(1) }, then: func(w *world) { w.later(time.Second) }, want: v1alpha1.RunnerExited},
		"TooOld":  {before: func(w *world) { w.ready() }, then: func(w *world) { w.later(time.Hour); w.later(apart) }, want: v1alpha1.JobTimeout},
		"Unheard": {before: func(w *world) { w.runner(); w.converge() }, then: func(w *world) { w.later(10 * time.Minute) }, want: v1alpha1.StartupTimeout},
		"Drained": {before: func(w *world) { w.runner(); w.converge(); w.drain() }, then: func(w *world) { w.later(time.Second) }, want: v1alpha1.Drained},
	}
	for fault, f := range faults {
		for name, s := range stories {
			t.Run(fault+"/"+name, func(t *testing.T) {
				w := newWorld(t)
				s.before(w)
				must(t, w.forgejo.SetFault(f))
				w.calls = nil
				w.clock.Step(2 * time.Hour)
				for range 3 {
					w.look()
					_, _ = w.reconcile()
				}
				if st := w.status(); st.Reason != "" || slices.Contains(w.calls, "delete Secret") || slices.Contains(w.calls, "patch Job") {
					t.Fatalf("verdict %q by no answer: %v", st.Reason, w.calls)
				}
				w.clock.Step(-2 * time.Hour)
				w.forgejo.UnsetFaults("", "")
				s.then(w)
				if st := w.status(); st.Reason != s.want {
					t.Errorf("once it answers: %q, want %q", st.Reason, s.want)
				}
			})
		}
	}
}

// TestAListLeavesOut: a runner that a list left out is asked for, and lives on (garm#834).
func TestAListLeavesOut(t *testing.T) {
	for name, f := range map[string]forgejo.Fault{"One": {Kind: forgejo.FaultOmit}, "All": {Kind: forgejo.FaultEmpty}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ready()
			f.Route, f.Runner = forgejo.RouteRunners, w.registrations()[0].ID
			must(t, w.forgejo.SetFault(f))
			asked := w.forgejo.Calls()[forgejo.RouteRunner]
			w.later(time.Second)
			if len(w.listed) > 0 || w.forgejo.Calls()[forgejo.RouteRunner] != asked+1 {
				t.Fatal("it was not left out, or not asked for")
			}
			if st := w.status(); st.Reason != "" || st.State != v1alpha1.StateIdle {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestNoCallsWithoutNews: a runner of which a look tells nothing new is asked for by nobody.
func TestNoCallsWithoutNews(t *testing.T) {
	w := newWorld(t)
	w.ready()
	asked := w.forgejo.Calls()[forgejo.RouteRunner]
	for range 5 {
		w.later(time.Second)
	}
	if got := w.forgejo.Calls()[forgejo.RouteRunner]; got != asked {
		t.Errorf("%d calls of its own", got-asked)
	}
}

// TestCreateFails for reasons that trying again does not change, and takes back what it did.
func TestCreateFails(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	refuse := func(err error) func(*world) {
		return func(w *world) {
			w.refuse = func(verb string, o client.Object) error {
				if _, ok := o.(*batchv1.Job); ok && verb == "create" {
					return err
				}
				return nil
			}
		}
	}
	cases := map[string]struct {
		reason  string
		world   func(*world)
		runner  func(*v1alpha1.RunnerInstance)
		message string
	}{
		"Template": {
			reason:  "its template makes no runner: nobody hears of it",
			runner:  func(mg *v1alpha1.RunnerInstance) { mg.Spec.ForProvider.Config.Pod.JobContainer = "other" },
			message: "spec.pod.template.spec.containers: none is called other, which spec.pod.jobContainer says the runner is in",
		},
		"Invalid": {
			reason:  "the API server knows better than the template's check",
			world:   refuse(kerrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, name, nil)),
			message: `cannot make what the runner runs in, acme-ci/` + name + `: Job.batch "` + name + `" is invalid`,
		},
		"NoNamespace": {
			reason:  "its job namespace was deleted",
			world:   refuse(kerrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "acme-ci")),
			message: `cannot make what the runner runs in, acme-ci/` + name + `: namespaces "acme-ci" not found`,
		},
		"Quota": {
			reason:  "a quota counts Jobs",
			world:   refuse(kerrors.NewForbidden(jobs, name, errors.New("exceeded quota: jobs"))),
			message: `cannot make what the runner runs in, acme-ci/` + name + `: jobs.batch "` + name + `" is forbidden: exceeded quota: jobs`,
		},
		"NotEphemeral": {
			reason: "a runner of any number of jobs would leak from one to the next (actions/runner#510)",
			world: func(w *world) {
				must(w.t, w.forgejo.SetFault(forgejo.Fault{Kind: forgejo.FaultIgnoreEphemeral}))
			},
			message: "the server registered it for any number of jobs, though it was asked for one only: Forgejo has to be 15 or later",
		},
		"OthersJob": {
			reason: "what has its name is not its own",
			world: func(w *world) {
				must(w.t, w.Create(w.t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-ci", Name: name}}))
			},
			message: "Job acme-ci/" + name + " exists and is not the runner's: delete it",
		},
		"OthersSecret": {
			reason: "what has its name is not its own",
			world: func(w *world) {
				must(w.t, w.Create(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "acme-ci", Name: name + "-credentials"}}))
			},
			message: "Secret acme-ci/" + name + "-credentials exists and is not the runner's: delete it",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.world != nil {
				tc.world(w)
			}
			w.runner(func(mg *v1alpha1.RunnerInstance) {
				if tc.runner != nil {
					tc.runner(mg)
				}
			})
			w.converge()
			if st := w.status(); st.Reason != v1alpha1.CreateFailed || strings.TrimSpace(st.Message) != tc.message || !st.Released {
				t.Errorf("%s: %+v\nwant %q", tc.reason, st, tc.message)
			}
			if r := w.registrations(); len(r) > 0 {
				t.Errorf("%s: registrations are left: %+v", tc.reason, r)
			}
			if s := w.secret(); s != nil && len(s.Labels) > 0 {
				t.Errorf("%s: its credential is left", tc.reason)
			}
		})
	}
}

// TestARightThatIsNewTakesAMoment: what is forbidden is tried again for a while.
func TestARightThatIsNewTakesAMoment(t *testing.T) {
	w := newWorld(t)
	refused := 0
	w.refuse = func(_ string, o client.Object) error {
		if _, ok := o.(*corev1.Secret); ok && refused < 3 {
			refused++
			return kerrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, name, errors.New("no right"))
		}
		return nil
	}
	w.runner()
	w.converge()
	w.wantOneRunner()

	w = newWorld(t)
	refused = -1 << 30
	w.refuse = func(_ string, o client.Object) error {
		if _, ok := o.(*corev1.Secret); ok {
			return kerrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, name, errors.New("no right"))
		}
		return nil
	}
	w.runner()
	for range 3 {
		_, _ = w.reconcile()
	}
	if st := w.status(); st.Reason != "" {
		t.Fatalf("too early: %+v", st)
	}
	w.clock.Step(patience + time.Second)
	_, _ = w.reconcile()
	if diff := cmp.Diff(v1alpha1.CreateFailed, w.status().Reason); diff != "" {
		t.Errorf("but not for ever: -want, +got:\n%s", diff)
	}
}
