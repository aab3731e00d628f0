package pool

import (
	"cmp"
	"slices"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
)

// beyond the limits of history are these instances. Those that are not released, or not counted, are not history yet. Nor are
// those that ended since the look began: one that took a job which the look saw waiting is what keeps that job from asking for
// another runner.
func beyond(s State) []string {
	if s.Look == nil {
		return nil
	}
	var names []string
	snap := snapshotOf(s)
	for phase, limit := range map[forgejov1.RunnerPhase]int32{
		forgejov1.RunnerCompleted: s.Settings.SuccessfulJobsHistoryLimit,
		forgejov1.RunnerFailed:    s.Settings.FailedJobsHistoryLimit,
	} {
		var kept []*forgejov1.RunnerInstance
		for n := range s.Instances {
			if i := &s.Instances[n]; i.Status.AtProvider.Phase == phase && i.DeletionTimestamp == nil && i.Status.AtProvider.Released && counted(i) {
				kept = append(kept, i)
			}
		}
		slices.SortFunc(kept, later)
		for _, i := range kept[min(int(limit), len(kept)):] {
			if at := i.Status.AtProvider.CompletionTime; at == nil || snap.before(at.Time) {
				names = append(names, i.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// later verdicts first.
func later(a, b *forgejov1.RunnerInstance) int {
	x, y := a.Status.AtProvider.CompletionTime, b.Status.AtProvider.CompletionTime
	if x == nil || y == nil {
		return cmp.Compare(a.Name, b.Name)
	}
	return cmp.Or(y.Compare(x.Time), cmp.Compare(a.Name, b.Name))
}
