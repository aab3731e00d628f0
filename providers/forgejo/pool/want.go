package pool

import (
	"cmp"
	"slices"
	"strconv"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
)

// A Want is a runner that is missing.
type Want struct {
	// Job that it is missing for, nil for a spare.
	Job *forgejov1.QueuedJob
}

// A jobKey tells attempts of jobs apart. Servers that give no handles tell jobs apart only.
type jobKey string

func keyOf(j forgejov1.QueuedJob) jobKey {
	if j.Handle != "" {
		return jobKey(j.Handle)
	}
	return jobKey("#" + strconv.FormatInt(j.ID, 10))
}

// queued is a job as a runner's record has it.
func queued(j api.Job) forgejov1.QueuedJob {
	return forgejov1.QueuedJob{Handle: j.Handle, ID: j.ID, Name: j.Name, OwnerID: j.OwnerID, RepositoryID: j.RepoID}
}

// waitingJobs of a list, oldest first.
func waitingJobs(all []api.Job) []api.Job {
	waiting := slices.DeleteFunc(slices.Clone(all), func(j api.Job) bool { return j.Status != api.JobWaiting })
	slices.SortFunc(waiting, func(a, b api.Job) int { return cmp.Compare(a.ID, b.ID) })
	return waiting
}

// serves reports whether labels are all that a job runs on.
func serves(labels, runsOn []string) bool {
	return len(runsOn) > 0 && len(missing(labels, runsOn)) == 0
}

// missing are the labels that a job runs on and that are not among these, sorted.
func missing(labels, runsOn []string) []string {
	var m []string
	for _, l := range runsOn {
		if !slices.Contains(labels, l) {
			m = append(m, l)
		}
	}
	slices.Sort(m)
	return slices.Compact(m)
}

// fair orders what is wanted so that the owner with the fewest runners comes first each time. Spares stay last.
func fair(wants []Want, running map[int64]int) []Want {
	owned := map[int64][]Want{}
	var owners []int64
	var ordered, spares []Want
	for _, w := range wants {
		if w.Job == nil {
			spares = append(spares, w)
			continue
		}
		if owned[w.Job.OwnerID] == nil {
			owners = append(owners, w.Job.OwnerID)
		}
		owned[w.Job.OwnerID] = append(owned[w.Job.OwnerID], w)
	}
	has := map[int64]int{}
	for _, o := range owners {
		has[o] = running[o]
	}
	for len(owners) > 0 {
		next := slices.MinFunc(owners, func(a, b int64) int {
			return cmp.Or(cmp.Compare(has[a], has[b]), cmp.Compare(owned[a][0].Job.ID, owned[b][0].Job.ID))
		})
		ordered = append(ordered, owned[next][0])
		owned[next] = owned[next][1:]
		has[next]++
		if len(owned[next]) == 0 {
			owners = slices.DeleteFunc(owners, func(o int64) bool { return o == next })
		}
	}
	return append(ordered, spares...)
}
