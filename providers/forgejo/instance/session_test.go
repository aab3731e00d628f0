package instance

import (
	"slices"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
)

// TestATokenThatWasReplaced: a runner whose own token was withdrawn is drained by the one that its pool has now, and does not hold
// its slot for ever.
func TestATokenThatWasReplaced(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.Runner)
		// anew is whether the pool was made anew since.
		anew bool
		want v1alpha1.RunnerReason
	}{
		"Replaced": {
			reason: "the pool watches the same server",
			want:   v1alpha1.Drained,
		},
		"NotWorking": {
			reason: "the token that the pool has now may not work: the runner's own may",
			change: func(p *v1alpha1.Runner) { p.Status.Conditions[0].Status = corev1.ConditionFalse },
		},
		"NotTried": {
			reason: "what the pool says is of the token before",
			change: func(p *v1alpha1.Runner) { p.Status.Conditions[0].ObservedGeneration-- },
		},
		"OtherServer": {
			reason: "a registration of the same number is another runner's there",
			change: func(p *v1alpha1.Runner) { p.Spec.ForProvider.Settings.Forgejo.URL = "https://other.example.com" },
		},
		"OtherScope": {
			reason: "the token is good for another scope",
			change: func(p *v1alpha1.Runner) {
				p.Spec.ForProvider.Settings.Forgejo.Scope = steading.ForgejoScope{Organization: "acme"}
			},
		},
		"OtherPool": {
			reason: "a pool of the same name has nothing to do with it",
			anew:   true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			pool := &v1alpha1.Runner{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "acme-linux", Generation: 2}}
			pool.Spec.ForProvider.Settings.Forgejo = steading.ForgejoServer{
				URL: w.url, Scope: steading.ForgejoScope{Instance: &steading.WholeScope{}}, TokenSecretRef: steading.TokenSecretReference{Name: "pat-2"},
			}
			pool.Status.Conditions = []xpv2.Condition{{Type: steading.ConditionQueueWatched, Status: corev1.ConditionTrue, ObservedGeneration: 2}}
			if tc.change != nil {
				tc.change(pool)
			}
			must(t, w.Create(t.Context(), pool))
			w.runner(func(mg *v1alpha1.RunnerInstance) {
				if !tc.anew {
					mg.Spec.ForProvider.Pool.UID = pool.UID
				}
			})
			w.converge()
			w.withdrawn = map[string]error{"pat": api.ErrUnauthorized}
			w.drain()
			w.clock.Step(time.Second)
			w.look()
			for range 3 {
				_, _ = w.reconcile()
			}
			if st := w.status(); st.Reason != tc.want {
				t.Errorf("%s: got verdict %q, want %q", tc.reason, st.Reason, tc.want)
			}
		})
	}
}

// TestATokenOfAnotherUser: where the scope is the user whose token it is, nothing is there by the token of another one. That is no
// verdict.
func TestATokenOfAnotherUser(t *testing.T) {
	w := newWorld(t)
	by := func(user string) *api.Client {
		t.Helper()
		token, err := w.forgejo.AddToken(user, "write:user")
		must(t, err)
		c, err := api.New(api.Config{URL: w.url, Token: token, Scope: api.User()})
		must(t, err)
		t.Cleanup(c.Close)
		return c
	}
	for _, user := range []string{"ann", "bob"} {
		must(t, w.forgejo.AddUser(user, false))
	}
	must(t, w.forgejo.AddRepository("ann", "dots", false))
	ann, bob := by("ann"), by("bob")
	w.api, w.repository = ann, "ann/dots"
	w.ready(func(mg *v1alpha1.RunnerInstance) {
		mg.Spec.ForProvider.Config.Forgejo.Scope = steading.ForgejoScope{User: &steading.WholeScope{}}
	})
	task := w.take()
	w.later(time.Second)

	w.api = bob
	for range 3 {
		w.clock.Step(time.Minute)
		w.look()
		_, _ = w.reconcile()
	}
	if st := w.status(); st.Reason != "" || slices.Contains(w.calls, "patch Job") || len(w.registrations()) != 1 {
		t.Fatalf("judged %q by a token that cannot see it: %v", st.Reason, w.calls)
	}
	c := w.record().GetCondition(xpv2.TypeSynced)
	if want := "nothing can be learned of it"; c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, want) {
		t.Errorf("it says %s %q, want %q", c.Status, c.Message, want)
	}

	w.api = ann
	w.report(task, "RESULT_SUCCESS")
	w.later(time.Second)
	if st := w.status(); st.Reason != v1alpha1.RunnerConsumed {
		t.Errorf("by its own user's token it is judged %q", st.Reason)
	}
}
