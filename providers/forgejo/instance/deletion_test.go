package instance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/test/fakes/forgejo"
)

// TestDeletingTheRecordKillsTheRunner, be it in the middle of a job.
func TestDeletingTheRecordKillsTheRunner(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.take()
	w.later(time.Second)
	w.delete()
	w.converge()
	w.wantNothing(false)
	if got := strings.Join(w.calls[:3], ", "); got != "delete Job, delete Secret, deregister" {
		t.Errorf("what has power goes first: %s", got)
	}
}

// TestDeletingHistory takes the child away, and asks no server: it may be gone by then.
func TestDeletingHistory(t *testing.T) {
	w := newWorld(t)
	w.ready()
	w.podEnds(1)
	w.converge()
	if !w.status().Released {
		t.Fatal("it is not finished")
	}
	w.noSession = errors.New("the Secret with the token is gone")
	w.delete()
	w.converge()
	w.wantNothing(false)
}

// TestOthersThingsOfItsNameAreLeft when the record is deleted.
func TestOthersThingsOfItsNameAreLeft(t *testing.T) {
	w := newWorld(t)
	theirs := &corev1.Secret{}
	theirs.Namespace, theirs.Name = "acme-ci", name+"-credentials"
	must(t, w.Create(t.Context(), theirs))
	w.runner()
	w.converge()
	w.delete()
	w.converge()
	if w.record() != nil || w.secret() == nil {
		t.Errorf("record %v, Secret %v", w.record(), w.secret())
	}
}

// TestDeletionDoesNotWaitForEver for a server that is gone, or for its token (actions-runner-controller#4655): what has power is
// deleted at once, and after two minutes the claim is told what may be left.
func TestDeletionDoesNotWaitForEver(t *testing.T) {
	cases := map[string]struct {
		reason string
		breaks func(*world)
		mends  func(*world)
		lets   func(*world)
		left   bool
	}{
		"ServerGone": {
			reason: "the server does not answer",
			breaks: func(w *world) { must(w.t, w.forgejo.SetFault(forgejo.Fault{Kind: forgejo.FaultUnavailable})) },
			lets:   func(w *world) { w.clock.Step(2 * time.Minute) },
			left:   true,
		},
		"TokenGone": {
			reason: "the token was deleted first, and the process started since",
			breaks: func(w *world) { w.noSession = errors.New("the Secret with the token is gone") },
			lets:   func(w *world) { w.clock.Step(2 * time.Minute) },
			left:   true,
		},
		"Abandoned": {
			reason: "an operator knows that it is gone for good",
			breaks: func(w *world) { must(w.t, w.forgejo.SetFault(forgejo.Fault{Kind: forgejo.FaultHTML})) },
			lets: func(w *world) {
				w.clock.Step(askForLeave)
				claim := read[steading.RunnerPool](w, client.ObjectKey{Namespace: "tenant-acme", Name: "linux"})
				claim.Annotations = map[string]string{names.AnnotationAbandon: "uid-pool"}
				must(w.t, w.Update(w.t.Context(), claim))
			},
			left: true,
		},
		"ServerBack": {
			reason: "it is tried for a while",
			breaks: func(w *world) { must(w.t, w.forgejo.SetFault(forgejo.Fault{Kind: forgejo.FaultUnavailable})) },
			lets:   func(w *world) { w.forgejo.UnsetFaults("", ""); w.clock.Step(time.Minute) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ready()
			tc.breaks(w)
			w.delete()
			if next := w.converge(); next != retry {
				t.Errorf("%s: it is tried again after %s", tc.reason, next)
			}
			if w.job() != nil || w.secret() != nil {
				t.Errorf("%s: what has power waits: Job %v, Secret %v", tc.reason, w.job(), w.secret())
			}
			if st := w.status(); !strings.Contains(st.Message, "it is tried for 2m0s") {
				t.Errorf("%s: it says %q", tc.reason, st.Message)
			}
			tc.lets(w)
			w.converge()
			if w.record() != nil {
				t.Errorf("%s: the record stays", tc.reason)
			}
			if left := len(w.registrations()) > 0; left != tc.left {
				t.Errorf("%s: registered: %t", tc.reason, left)
			}
			w.wantLetGo(tc.left, "registration ")
		})
	}
}

// wantLetGo is an event on the claim that names what may be left.
func (w *world) wantLetGo(want bool, what string) {
	w.t.Helper()
	select {
	case e := <-w.events.Events:
		if !want || !strings.HasPrefix(e, "Warning RunnerLetGo runner "+name+" is let go, and may leave behind: ") || !strings.Contains(e, what) {
			w.t.Errorf("event %q", e)
		}
	default:
		if want {
			w.t.Error("nobody is told")
		}
	}
}

// TestTheJobNamespaceGoes under its runners: what is in it goes with it, and nobody has a right there (actions-runner-controller#4484).
func TestTheJobNamespaceGoes(t *testing.T) {
	for _, judged := range []bool{false, true} {
		w := newWorld(t)
		w.ready()
		ns := read[corev1.Namespace](w, client.ObjectKey{Name: "acme-ci"})
		ns.Finalizers = []string{"kubernetes"}
		must(t, w.Update(t.Context(), ns))
		must(t, w.Delete(t.Context(), ns))
		w.refuse = func(verb string, o client.Object) error {
			if o.GetNamespace() != "acme-ci" {
				return nil
			}
			return kerrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, o.GetName(), errors.New("no right"))
		}
		if judged {
			must(t, w.forgejo.DeleteRunner(w.registrations()[0].ID))
			w.later(time.Second)
			if w.status().Reason == "" {
				t.Fatal("no verdict")
			}
		}
		w.delete()
		_, _ = w.reconcile()
		if len(w.registrations()) > 0 {
			t.Error("it is registered still")
		}
		w.refuse = nil
		for _, o := range []client.Object{w.job(), w.secret()} {
			_ = w.Delete(context.Background(), o)
		}
		w.converge()
		if w.record() != nil {
			t.Errorf("judged %t: the record stays", judged)
		}
	}
}

// TestTheJobNamespaceGoesUnderAPool that stays: the right to read what is there goes with it, and what was there has ended.
func TestTheJobNamespaceGoesUnderAPool(t *testing.T) {
	cases := map[string]struct {
		reason string
		change []func(*v1alpha1.RunnerInstance)
		judged bool
		want   v1alpha1.RunnerReason
	}{
		"Pod":    {reason: "its Job went with the namespace", want: v1alpha1.RunnerExited},
		"Judged": {reason: "what it ran in need not be stopped any more", judged: true, want: v1alpha1.RunnerConsumed},
		"VM":     {reason: "its machine went with the namespace", change: []func(*v1alpha1.RunnerInstance){boots}, want: v1alpha1.RunnerExited},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.runner(tc.change...)
			w.converge()
			if w.job() != nil {
				w.podRuns()
			} else {
				w.guest(kubevirtv1.Running)
			}
			w.connect()
			w.later(time.Second)
			if tc.judged {
				must(t, w.forgejo.DeleteRunner(w.registrations()[0].ID))
				w.later(time.Second)
			}
			w.closeNamespace()
			w.later(grace)
			if st := w.status(); st.Reason != tc.want || !st.Released {
				t.Errorf("%s: %+v", tc.reason, st)
			}
			if r := w.registrations(); len(r) > 0 {
				t.Errorf("%s: registrations are left: %+v", tc.reason, r)
			}
		})
	}
}

// closeNamespace of the job: what is in it goes, and then the right to do anything there.
func (w *world) closeNamespace() {
	w.t.Helper()
	if j := w.job(); j != nil {
		w.killPods()
		must(w.t, w.Delete(w.t.Context(), j))
	}
	must(w.t, w.Delete(w.t.Context(), read[corev1.Namespace](w, client.ObjectKey{Name: inJob.Namespace})))
	w.hide = func(k client.ObjectKey) error {
		if k.Namespace != inJob.Namespace {
			return nil
		}
		return kerrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, k.Name, errors.New("no right"))
	}
	w.refuse = func(_ string, o client.Object) error { return w.hide(client.ObjectKeyFromObject(o)) }
}

// TestAChildThatDoesNotGo holds its record for a while, since it may run; then not.
func TestAChildThatDoesNotGo(t *testing.T) {
	w := newWorld(t)
	w.ready()
	j := w.job()
	j.Finalizers = []string{"example.com/stay"}
	must(t, w.Update(t.Context(), j))
	w.delete()
	if next := w.converge(); next != retry {
		t.Errorf("looked at again after %s", next)
	}
	if w.record() == nil || len(w.registrations()) > 0 {
		t.Errorf("record %v, registered %v", w.record(), w.registrations())
	}
	w.clock.Step(2 * time.Minute)
	w.converge()
	if w.record() != nil {
		t.Error("the record stays")
	}
	w.wantLetGo(true, "Job acme-ci/"+name)
}
