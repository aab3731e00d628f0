package pool

import (
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/server"
)

// forsaken are the runners of a server, or of a scope, that the pool does not watch any more and that says nothing of them: it was
// moved, renamed or deleted, or the token is another user's. They would hold their slots for ever, since without an answer there is no verdict; so they are
// deleted, as they were if the pool was. One with a job in hand has its time first.
func forsaken(s State) []string {
	if s.Look == nil {
		return nil // Who says that the server of now is there?
	}
	var names []string
	for n := range s.Instances {
		i := &s.Instances[n]
		if !judged(i) && i.DeletionTimestamp == nil && left(i, s) && unheard(i, s.Now) && (!inHand(i) || overdue(i, s.Now)) {
			names = append(names, i.Name)
		}
	}
	return names
}

// left reports whether the pool does not look any more where a runner is.
func left(i *forgejov1.RunnerInstance, s State) bool {
	r := i.Status.AtProvider.Registration
	return elsewhere(i, s.Settings.Forgejo) || s.Look.User != 0 && r != nil && r.OwnerID != 0 && r.OwnerID != s.Look.User
}

// elsewhere reports whether a runner is of another server or scope.
func elsewhere(i *forgejov1.RunnerInstance, now steading.ForgejoServer) bool {
	return !server.Same(i.Spec.ForProvider.Config.Forgejo, now)
}

// unheard reports whether nothing could be learned about a runner for a while.
func unheard(i *forgejov1.RunnerInstance, now time.Time) bool {
	c := i.GetCondition(xpv2.TypeSynced)
	return c.Status == corev1.ConditionFalse && now.Sub(c.LastTransitionTime.Time) >= stuck
}

// overdue reports whether a runner with a job in hand has had it for as long as it may.
func overdue(i *forgejov1.RunnerInstance, now time.Time) bool {
	since := i.CreationTimestamp.Time
	if active := i.Status.AtProvider.ActiveTime; active != nil {
		since = active.Time
	}
	return now.Sub(since) >= lifetime(i)
}
