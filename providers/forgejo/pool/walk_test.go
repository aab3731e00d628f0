package pool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/forgejo/server"
)

// walk is a queue, its runners, and a pool that decides about them, in a random order.
type walk struct {
	t       *testing.T
	rnd     *rand.Rand
	now     time.Time
	spec    steading.RunnerPoolSpec
	queue   []api.Job
	online  map[int64]api.RunnerStatus // by registration
	offline map[int64]time.Time        // since when looks list it so
	pool    []forgejov1.RunnerInstance
	look    *server.Look
	jobs    []api.Job
	plan    Plan
	lastID  int64
	decided map[int64]map[jobKey]int // runners made for a job, by look
	// listed and free are what was true when the look was taken.
	free int
	made int
	// drained are the runners that were, by what the look said of them.
	drained map[api.RunnerStatus]int
}

func newWalk(t *testing.T, seed uint64) *walk {
	rnd := rand.New(rand.NewPCG(seed, 7))
	return &walk{
		t: t, rnd: rnd, now: epoch, online: map[int64]api.RunnerStatus{}, decided: map[int64]map[jobKey]int{},
		drained: map[api.RunnerStatus]int{},
		spec: settings(func(s *steading.RunnerPoolSpec) {
			s.MaxRunners, s.MinRunners = int32(rnd.IntN(8)), int32(rnd.IntN(3))
			s.MinRunners = min(s.MinRunners, s.MaxRunners)
			s.JobTimeoutSeconds = int32(60 + rnd.IntN(600))
			if rnd.IntN(3) == 0 {
				s.Assignment, s.Fairness = steading.AssignTargeted, steading.FairnessOwner
			}
		}),
	}
}

func (w *walk) id() int64 {
	w.lastID++
	return w.lastID
}

// step of one of the parts.
func (w *walk) step() {
	w.now = w.now.Add(time.Duration(1+w.rnd.IntN(3)) * time.Second)
	switch w.rnd.IntN(9) {
	case 0:
		for range w.rnd.IntN(4) {
			w.queue = append(w.queue, job(w.id(), func(j *api.Job) { j.OwnerID = int64(w.rnd.IntN(3)) }))
		}
	case 1:
		w.takeALook()
	case 2:
		w.register()
	case 3:
		w.takeJob()
	case 4:
		w.finish()
	case 5:
		w.judge()
	case 6:
		w.lose()
	default:
		w.decide()
	}
}

func (w *walk) takeALook() {
	number := int64(1)
	if w.look != nil {
		number = w.look.Number + 1
	}
	states := map[int64]api.RunnerStatus{}
	since := map[int64]time.Time{}
	for id, s := range w.online {
		if states[id] = s; s == api.RunnerOffline {
			since[id] = w.now
			if t, ok := w.offline[id]; ok {
				since[id] = t
			}
		}
	}
	w.offline = since
	// History goes.
	w.pool = slices.DeleteFunc(w.pool, func(i forgejov1.RunnerInstance) bool {
		return judged(&i) && w.now.Sub(i.Status.AtProvider.CompletionTime.Time) > 10*time.Second
	})
	w.look = &server.Look{Number: number, Began: w.now, Runners: listing(states)}
	w.jobs = waitingJobs(w.queue)
	w.free, w.made = w.canTake(), 0
}

// canTake are the runners that can take any job, or one that waits. One that was lost for long is not counted on.
func (w *walk) canTake() int {
	waiting, n := map[jobKey]bool{}, 0
	for _, j := range w.jobs {
		waiting[keyOf(queued(j))] = true
	}
	for k := range w.pool {
		i := &w.pool[k]
		reg := i.Status.AtProvider.Registration
		if judged(i) || i.Spec.ForProvider.Drain || reg != nil && w.online[reg.ID] != api.RunnerIdle && w.online[reg.ID] != api.RunnerOffline {
			continue
		}
		if reg != nil && i.Status.AtProvider.OnlineTime != nil && w.online[reg.ID] == api.RunnerOffline && w.now.Sub(w.offline[reg.ID]) >= silent {
			continue
		}
		if j := i.Spec.ForProvider.Job; w.spec.Assignment == steading.AssignTargeted && j != nil && !waiting[keyOf(*j)] {
			continue
		}
		n++
	}
	return n
}

func (w *walk) pick(of func(*forgejov1.RunnerInstance) bool) *forgejov1.RunnerInstance {
	for _, k := range w.rnd.Perm(len(w.pool)) {
		if i := &w.pool[k]; !judged(i) && of(i) {
			return i
		}
	}
	return nil
}

func (w *walk) state(i *forgejov1.RunnerInstance) api.RunnerStatus {
	if i.Status.AtProvider.Registration == nil {
		return ""
	}
	return w.online[i.Status.AtProvider.Registration.ID]
}

func (w *walk) register() {
	if i := w.pick(func(i *forgejov1.RunnerInstance) bool { return i.Status.AtProvider.Registration == nil }); i != nil {
		id := w.id()
		registered(id)(i)
		meta.SetExternalCreateSucceeded(i, w.now)
		w.online[id] = []api.RunnerStatus{api.RunnerOffline, api.RunnerIdle}[w.rnd.IntN(2)]
		if w.online[id] == api.RunnerIdle {
			i.Status.AtProvider.OnlineTime = new(metav1.NewTime(w.now))
		}
	}
}

// lose a runner that waits for a job, and let some time go by. It may come back.
func (w *walk) lose() {
	w.now = w.now.Add(time.Duration(w.rnd.IntN(60)) * time.Second)
	if i := w.pick(func(i *forgejov1.RunnerInstance) bool { return w.state(i) == api.RunnerIdle }); i != nil {
		w.online[i.Status.AtProvider.Registration.ID] = api.RunnerOffline
	}
}

// takeJob as the server has it: a targeted runner its own, others the oldest.
func (w *walk) takeJob() {
	i := w.pick(func(i *forgejov1.RunnerInstance) bool {
		return w.state(i) == api.RunnerIdle || w.state(i) == api.RunnerOffline
	})
	if i == nil {
		return
	}
	for n, j := range w.queue {
		own := i.Spec.ForProvider.Job
		if w.spec.Assignment == steading.AssignTargeted && own != nil && keyOf(*own) != keyOf(queued(j)) {
			continue
		}
		w.queue = append(w.queue[:n:n], w.queue[n+1:]...)
		w.online[i.Status.AtProvider.Registration.ID] = api.RunnerActive
		return
	}
}

func (w *walk) finish() {
	if i := w.pick(func(i *forgejov1.RunnerInstance) bool { return w.state(i) == api.RunnerActive }); i != nil {
		delete(w.online, i.Status.AtProvider.Registration.ID)
	}
}

// judge a runner that is gone, or that is drained and has no job.
func (w *walk) judge() {
	if i := w.pick(func(i *forgejov1.RunnerInstance) bool {
		return i.Spec.ForProvider.Drain && w.state(i) != api.RunnerActive
	}); i != nil {
		if reg := i.Status.AtProvider.Registration; reg != nil {
			delete(w.online, reg.ID)
		}
		ended(forgejov1.Drained, w.now.Sub(epoch))(i)
		return
	}
	i := w.pick(func(i *forgejov1.RunnerInstance) bool {
		return i.Status.AtProvider.Registration != nil && w.state(i) == ""
	})
	if i != nil {
		at := metav1.NewTime(w.now)
		o := &i.Status.AtProvider
		o.Phase, o.Reason, o.CompletionTime, o.Released = forgejov1.RunnerCompleted, forgejov1.RunnerConsumed, &at, true
	}
}

// gone are the registrations that are asked for, because the look does not list them.
func (w *walk) gone() map[int64]bool {
	g := map[int64]bool{}
	if w.look == nil {
		return g
	}
	snap := snapshotOf(State{Settings: w.spec, Look: w.look})
	for _, id := range snap.unlisted(w.pool) {
		if _, there := w.online[id]; !there {
			g[id] = true
		}
	}
	return g
}

func (w *walk) decide() {
	d := Decide(State{
		Now: w.now, Settings: w.spec, Minimum: int(w.spec.MinRunners), Look: w.look, Gone: w.gone(), Offline: w.offline, Jobs: w.jobs,
		Instances: w.pool, Plan: w.plan,
	})
	w.plan = d.Plan
	for _, name := range d.Drain {
		i := &w.pool[slices.IndexFunc(w.pool, func(i forgejov1.RunnerInstance) bool { return i.Name == name })]
		i.Spec.ForProvider.Drain = true
		w.drained[w.look.Runners[i.Status.AtProvider.Registration.ID].Status]++
	}
	for _, want := range d.Spawn {
		i := instance(fmt.Sprintf("acme-linux-%08d", w.id()))
		i.CreationTimestamp, i.Spec.ForProvider.Config = metav1.NewTime(w.now), configOf(w.spec, "")
		if i.Spec.ForProvider.Job = want.Job; want.Job != nil {
			w.noteJob(*want.Job)
		}
		w.pool = append(w.pool, i)
		w.made++
	}
	w.check()
}

// noteJob fails for a second runner of one look's job.
func (w *walk) noteJob(j forgejov1.QueuedJob) {
	by := w.decided[w.look.Number]
	if by == nil {
		by = map[jobKey]int{}
		w.decided[w.look.Number] = by
	}
	if by[keyOf(j)]++; by[keyOf(j)] > 1 {
		w.t.Errorf("look %d makes a second runner for job %d", w.look.Number, j.ID)
	}
}

func (w *walk) check() {
	n := 0
	for k := range w.pool {
		if live(&w.pool[k], w.now) {
			n++
		}
	}
	if n > int(w.spec.MaxRunners) {
		w.t.Errorf("%d runners live, above max %d", n, w.spec.MaxRunners)
	}
	if w.look != nil {
		if most := max(0, len(w.jobs)+int(w.spec.MinRunners)-w.free); w.made > most {
			w.t.Errorf("look %d made %d runners, for %d jobs, minimum %d and %d that could take one", w.look.Number, w.made, len(w.jobs), w.spec.MinRunners, w.free)
		}
	}
}

// settle has everything happen that can, until nothing does. In the end no spare is renewed.
func (w *walk) settle() {
	for n := range 150 {
		for k := range w.pool {
			if n >= 120 {
				w.pool[k].Spec.ForProvider.Config.JobTimeoutSeconds = 3600
			}
		}
		w.now = w.now.Add(3 * time.Second)
		w.takeALook()
		w.decide()
		for range w.pool {
			w.register()
			w.takeJob()
			w.finish()
			w.judge()
		}
	}
}

// TestNeverTooManyAndAlwaysEnough, in any order of things: never more runners than max, never a second one for a job that was
// polled twice, all jobs served in the end, and the spares there (the seed's arithmetic; ARC#4138, ARC#4374, ARC#3200).
func TestNeverTooManyAndAlwaysEnough(t *testing.T) {
	lost, renewed := 0, 0
	for seed := range uint64(100) {
		w := newWalk(t, seed)
		for range 300 {
			w.step()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		w.settle()
		w.takeALook()
		if w.spec.MaxRunners > 0 && len(w.queue) > 0 && w.spec.Assignment == steading.AssignAny {
			t.Fatalf("seed %d: %d jobs are left, at max %d", seed, len(w.queue), w.spec.MaxRunners)
		}
		if w.spec.Assignment == steading.AssignAny && w.canTake() < int(w.spec.MinRunners) {
			t.Fatalf("seed %d: %d runners are ready, and the minimum is %d", seed, w.canTake(), w.spec.MinRunners)
		}
		lost, renewed = lost+w.drained[api.RunnerOffline], renewed+w.drained[api.RunnerIdle]
	}
	if lost == 0 || renewed == 0 {
		t.Errorf("%d runners that were lost had to give way, and %d spares were renewed", lost, renewed)
	}
}
