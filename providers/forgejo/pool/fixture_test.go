package pool

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/forgejo/server"
)

var epoch = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// settings of a pool like the claim's defaults, with max 10.
func settings(edit ...func(*steading.RunnerPoolSpec)) steading.RunnerPoolSpec {
	s := steading.RunnerPoolSpec{
		Forgejo: steading.ForgejoServer{
			URL:            "https://git.example.com",
			Scope:          steading.ForgejoScope{Organization: "acme"},
			TokenSecretRef: steading.TokenSecretReference{Name: "forgejo-pat", Key: "token"},
		},
		Labels: []string{"docker"}, JobNamespace: "acme-ci", MaxRunners: 10, PollIntervalSeconds: 30, StartupTimeoutSeconds: 600, JobTimeoutSeconds: 11400,
		SuccessfulJobsHistoryLimit: 3, FailedJobsHistoryLimit: 1, Assignment: steading.AssignAny, Fairness: steading.FairnessNone,
		Pod: &steading.RunnerPod{RunnerImage: "runner:12", JobContainer: "job"},
	}
	for _, e := range edit {
		e(&s)
	}
	return s
}

func job(id int64, edit ...func(*api.Job)) api.Job {
	j := api.Job{ID: id, Handle: fmt.Sprintf("handle-%d", id), Attempt: 1, OwnerID: 1, Status: api.JobWaiting, RunsOn: []string{"docker"}}
	for _, e := range edit {
		e(&j)
	}
	return j
}

func jobs(n int) []api.Job {
	all := make([]api.Job, 0, n)
	for i := range n {
		all = append(all, job(int64(i+1)))
	}
	return all
}

// instance is a runner that was just made.
func instance(name string, edit ...func(*forgejov1.RunnerInstance)) forgejov1.RunnerInstance {
	i := forgejov1.RunnerInstance{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.SystemNamespace, Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(epoch),
	}}
	i.Spec.ForProvider.Config = configOf(settings(), "")
	i.Status.AtProvider.Phase = forgejov1.RunnerPending
	for _, e := range edit {
		e(&i)
	}
	return i
}

func registered(id int64) func(*forgejov1.RunnerInstance) {
	return func(i *forgejov1.RunnerInstance) {
		i.Status.AtProvider.Registration = &forgejov1.Registration{ID: id, UUID: strconv.FormatInt(id, 10)}
	}
}

func madeFor(j api.Job) func(*forgejov1.RunnerInstance) {
	return func(i *forgejov1.RunnerInstance) {
		q := queued(j)
		i.Spec.ForProvider.Job = &q
	}
}

// ended with a verdict, after a time.
func ended(reason forgejov1.RunnerReason, after time.Duration) func(*forgejov1.RunnerInstance) {
	return func(i *forgejov1.RunnerInstance) {
		o := &i.Status.AtProvider
		o.Phase, o.Reason, o.Released = forgejov1.RunnerFailed, reason, true
		if reason == forgejov1.RunnerConsumed || reason == forgejov1.Drained || reason == forgejov1.JobGone {
			o.Phase = forgejov1.RunnerCompleted
		}
		at := metav1.NewTime(epoch.Add(after))
		o.CompletionTime = &at
	}
}

func marked(i *forgejov1.RunnerInstance) {
	i.Annotations = map[string]string{names.AnnotationCounted: Tally{Verdicts: 1}.mark()}
}

func listing(states map[int64]api.RunnerStatus) map[int64]api.Runner {
	all := map[int64]api.Runner{}
	for id, s := range states {
		all[id] = api.Runner{ID: id, UUID: strconv.FormatInt(id, 10), Status: s, Ephemeral: true}
	}
	return all
}

func look(states map[int64]api.RunnerStatus) *server.Look {
	return &server.Look{Number: 1, Began: epoch, Runners: listing(states)}
}

func deleted(i *forgejov1.RunnerInstance) { i.DeletionTimestamp = new(metav1.NewTime(epoch)) }
