package pool

import (
	"cmp"
	"slices"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
)

// beyond the limits of history are these instances. Those that are not released, or not counted, are not history yet.
func beyond(s State) []string {
	var names []string
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
			names = append(names, i.Name)
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
