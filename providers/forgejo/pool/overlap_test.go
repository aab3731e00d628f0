package pool

import (
	"context"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// more is a pool of tenant acme that is younger than linux and serves the same jobs.
var more = client.ObjectKey{Namespace: names.SystemNamespace, Name: "acme-more"}

func (w *world) overlap() {
	w.t.Helper()
	younger := w.runner()
	younger.Name, younger.UID, younger.CreationTimestamp = more.Name, "runner-more", metav1.NewTime(epoch.Add(time.Hour))
	younger.Spec.ForProvider.Identity.UID, younger.Spec.ForProvider.Claim.Name = "xr-more", "more"
	w.must(w.kube.Create(context.Background(), younger))
}

// passAll of these pools, in this order.
func (w *world) passAll(pools ...client.ObjectKey) {
	w.t.Helper()
	for _, p := range pools {
		_, err := w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: p})
		w.must(err)
	}
}

// another look at the server of pool more, which passes no pool.
func (w *world) another() {
	w.t.Helper()
	s := w.r.memories.of(more).session
	w.clock.Step(30 * time.Second)
	w.until("the server is looked at", func() bool {
		l, ok := s.Look()
		return ok && l.Number > w.looked
	})
	l, _ := s.Look()
	w.looked = l.Number
}

// madeBy counts the runners that were made, by pool.
func (w *world) madeBy() map[string]int {
	w.t.Helper()
	made := map[string]int{}
	for _, i := range w.instances() {
		made[i.Labels[names.LabelPool]]++
	}
	return made
}

// TestPoolsThatOverlapMakeOneRunnerForAJob: the older takes what it has room for, the other one the rest, whichever is passed
// first, and neither makes more at the next looks.
func TestPoolsThatOverlapMakeOneRunnerForAJob(t *testing.T) {
	for name, pools := range map[string][]client.ObjectKey{"OlderFirst": {linux, more}, "YoungerFirst": {more, linux}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(s *steading.RunnerPoolSpec) { s.MaxRunners = 2 })
			w.overlap()
			w.look()
			w.passAll(pools...) // Both are known to each other.
			w.queue(5)
			for range 3 {
				w.another()
				w.passAll(pools...)
			}
			jobs := map[string]int{}
			for _, i := range w.instances() {
				jobs[i.Spec.ForProvider.Job.Handle]++
			}
			if made := w.madeBy(); made["acme-linux"] != 2 || made["acme-more"] != 3 {
				t.Errorf("they made %v", made)
			}
			if len(jobs) != 5 {
				t.Errorf("5 jobs, and runners for %d of them: %v", len(jobs), jobs)
			}
			r := &forgejov1.Runner{}
			w.clock.Step(seldom)
			w.passAll(pools...)
			w.must(w.kube.Get(context.Background(), more, r))
			if n := r.Status.AtProvider.Waiting + w.get().Status.AtProvider.Waiting; n != 5 {
				t.Errorf("5 jobs wait, and the pools count %d", n)
			}
		})
	}
}

// TestAPoolThatCannotActLeavesJobsToOthers, also those that it had room for; but not those that it made runners for.
func TestAPoolThatCannotActLeavesJobsToOthers(t *testing.T) {
	cases := map[string]func(w *world){
		"Paused": func(w *world) {
			r := w.get()
			meta.AddAnnotations(r, map[string]string{meta.AnnotationKeyReconciliationPaused: "true"})
			w.must(w.kube.Update(context.Background(), r))
		},
		"TokenMissing": func(w *world) {
			w.edit(func(s *steading.RunnerPoolSpec) { s.Forgejo.TokenSecretRef.Name = "typo" })
		},
		"ServerUnreachable": func(w *world) {
			w.edit(func(s *steading.RunnerPoolSpec) { s.Forgejo.URL = "http://127.0.0.1:1" })
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.overlap()
			w.look()
			w.passAll(linux, more)
			w.queue(1)
			w.another()
			w.passAll(linux, more) // The older makes a runner.
			spoil(w)
			w.passAll(linux)
			w.queue(3)
			for range 2 {
				w.another()
				w.passAll(more, linux, more)
			}
			if made := w.madeBy(); made["acme-linux"] != 1 || made["acme-more"] != 3 {
				t.Errorf("they made %v", made)
			}
		})
	}
}
