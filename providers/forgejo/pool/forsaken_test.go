package pool

import (
	"errors"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/forgejo/server"
)

// TestRunnersOfAServerThatWasLeft: a pool that was pointed to another server is not held up by one that is gone.
func TestRunnersOfAServerThatWasLeft(t *testing.T) {
	moved := func(s *steading.RunnerPoolSpec) { s.Forgejo.URL = "https://new.example.com" }
	renamed := func(s *steading.RunnerPoolSpec) { s.Forgejo.Scope = steading.ForgejoScope{Organization: "acme-inc"} }
	unheard := func(since time.Duration) func(*forgejov1.RunnerInstance) {
		return func(i *forgejov1.RunnerInstance) {
			c := xpv2.ReconcileError(errors.New("the server is gone"))
			c.LastTransitionTime = metav1.NewTime(epoch.Add(-since))
			i.SetConditions(c)
		}
	}
	hasJob := func(i *forgejov1.RunnerInstance) { i.Status.AtProvider.ActiveTime = new(metav1.NewTime(epoch)) }
	hadJob := func(i *forgejov1.RunnerInstance) {
		i.Status.AtProvider.ActiveTime = new(metav1.NewTime(epoch.Add(-4 * time.Hour)))
	}
	mine := func(s *steading.RunnerPoolSpec) {
		s.Forgejo.Scope = steading.ForgejoScope{User: &steading.WholeScope{}}
	}
	of := func(user int64) func(*forgejov1.RunnerInstance) {
		return func(i *forgejov1.RunnerInstance) {
			i.Spec.ForProvider.Config = configOf(settings(mine), "")
			i.Status.AtProvider.Registration.OwnerID = user
		}
	}
	by := func(user int64) *server.Look {
		l := look(nil)
		l.User = user
		return l
	}
	old := func(i *forgejov1.RunnerInstance) { i.CreationTimestamp = metav1.NewTime(epoch.Add(-5 * time.Hour)) }
	cases := map[string]struct {
		reason string
		edit   func(*steading.RunnerPoolSpec)
		is     []func(*forgejov1.RunnerInstance)
		look   *server.Look
		want   []string
	}{
		"Moved":   {"a server that is gone", moved, []func(*forgejov1.RunnerInstance){unheard(stuck)}, look(nil), []string{"acme-linux-1"}},
		"Renamed": {"an organization that is gone", renamed, []func(*forgejov1.RunnerInstance){unheard(stuck)}, look(nil), []string{"acme-linux-1"}},
		"Early":   {"it may answer in a moment", moved, []func(*forgejov1.RunnerInstance){unheard(stuck - time.Second)}, look(nil), nil},
		"Heard":   {"a server that answers drains it", moved, nil, look(nil), nil},
		"Stayed":  {"the pool's own server that is down decides nothing", func(*steading.RunnerPoolSpec) {}, []func(*forgejov1.RunnerInstance){unheard(time.Hour)}, look(nil), nil},
		"NoLook":  {"the other server does not answer either", moved, []func(*forgejov1.RunnerInstance){unheard(time.Hour)}, nil, nil},
		"JobInHand": {
			"it may be at work yet", moved, []func(*forgejov1.RunnerInstance){unheard(time.Hour), hasJob}, look(nil), nil,
		},
		"TakenLate": {
			"its job has its time, however long it waited for that", moved, []func(*forgejov1.RunnerInstance){unheard(time.Hour), hasJob, old}, look(nil), nil,
		},
		"TooOld": {
			"it had its time", moved, []func(*forgejov1.RunnerInstance){unheard(time.Hour), hadJob, old}, look(nil), []string{"acme-linux-1"},
		},
		"OtherUser":   {"a token of another user", mine, []func(*forgejov1.RunnerInstance){of(7), unheard(stuck)}, by(8), []string{"acme-linux-1"}},
		"SameUser":    {"the server is down for its own user", mine, []func(*forgejov1.RunnerInstance){of(7), unheard(time.Hour)}, by(7), nil},
		"UnknownUser": {"nobody says whose token it is", mine, []func(*forgejov1.RunnerInstance){of(7), unheard(time.Hour)}, by(0), nil},
		"Judged":      {"it is history", moved, []func(*forgejov1.RunnerInstance){unheard(time.Hour), ended(forgejov1.RunnerConsumed, 0)}, look(nil), nil},
		"Deleted":     {"it goes already", moved, []func(*forgejov1.RunnerInstance){unheard(time.Hour), deleted}, look(nil), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := instance("acme-linux-1", append([]func(*forgejov1.RunnerInstance){registered(1)}, tc.is...)...)
			config := configOf(settings(tc.edit), "")
			d := Decide(State{Now: epoch, Settings: settings(tc.edit), Config: &config, Look: tc.look, Instances: []forgejov1.RunnerInstance{i}})
			if diff := cmp.Diff(tc.want, d.Delete); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRunnersElsewhereTakeNoJobs of the server that the pool was pointed to, where nobody is asked for their numbers either.
func TestRunnersElsewhereTakeNoJobs(t *testing.T) {
	moved := settings(func(s *steading.RunnerPoolSpec) { s.Forgejo.URL = "https://new.example.com" })
	config := configOf(moved, "")
	s := State{Now: epoch, Settings: moved, Config: &config, Look: look(map[int64]api.RunnerStatus{1: api.RunnerIdle}), Jobs: jobs(2), Instances: group(2)}
	d := Decide(s)
	if len(d.Spawn) != 2 || d.Available != 0 || len(d.Drain) != 2 {
		t.Errorf("%d runners are made for 2 jobs, %d are available, and %d of 2 drained", len(d.Spawn), d.Available, len(d.Drain))
	}
	if ids := snapshotOf(s).unlisted(s.Instances); len(ids) > 0 {
		t.Errorf("the other server is asked for %v", ids)
	}
}
