package pool

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
)

// TestPoolsThatOverlapMakeOneRunnerForAJob: the older takes what it has room for, the other one the rest, whichever is passed
// first, and neither makes more at the next looks.
func TestPoolsThatOverlapMakeOneRunnerForAJob(t *testing.T) {
	for name, youngerFirst := range map[string]bool{"OlderFirst": false, "YoungerFirst": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			older := w.get()
			older.Spec.ForProvider.Settings.MaxRunners = 2
			w.must(w.kube.Update(context.Background(), older))
			younger := w.runner()
			younger.Name, younger.UID, younger.CreationTimestamp = "acme-more", "runner-more", metav1.NewTime(epoch.Add(time.Hour))
			younger.Spec.ForProvider.Identity.UID, younger.Spec.ForProvider.Claim.Name = "xr-more", "more"
			w.must(w.kube.Create(context.Background(), younger))
			passBoth := func() {
				pools := []client.ObjectKey{linux, client.ObjectKeyFromObject(younger)}
				if youngerFirst {
					pools[0], pools[1] = pools[1], pools[0]
				}
				for _, p := range pools {
					_, err := w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: p})
					w.must(err)
				}
			}
			w.look()
			passBoth() // Both are known to each other.
			w.queue(5)
			for range 3 {
				w.clock.Step(30 * time.Second)
				w.until("the server is looked at", func() bool {
					l, ok := w.session().Look()
					return ok && l.Number > w.looked
				})
				l, _ := w.session().Look()
				w.looked = l.Number
				passBoth()
			}
			made, jobs := map[string]int{}, map[string]int{}
			for _, i := range w.instances() {
				made[i.Labels[names.LabelPool]]++
				jobs[i.Spec.ForProvider.Job.Handle]++
			}
			if made["acme-linux"] != 2 || made["acme-more"] != 3 {
				t.Errorf("they made %v", made)
			}
			if len(jobs) != 5 {
				t.Errorf("5 jobs, and runners for %d of them: %v", len(jobs), jobs)
			}
			r := &forgejov1.Runner{}
			w.clock.Step(seldom)
			passBoth()
			w.must(w.kube.Get(context.Background(), client.ObjectKeyFromObject(younger), r))
			if n := r.Status.AtProvider.Waiting + w.get().Status.AtProvider.Waiting; n != 5 {
				t.Errorf("5 jobs wait, and the pools count %d", n)
			}
		})
	}
}
