package pool

import (
	"fmt"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/forgejo/server"
)

// group of n runners alike, with ids from 1 on.
func group(n int, edit ...func(*forgejov1.RunnerInstance)) []forgejov1.RunnerInstance {
	var all []forgejov1.RunnerInstance
	for k := range n {
		id := int64(k + 1)
		all = append(all, instance(fmt.Sprintf("acme-linux-%08d", id), append([]func(*forgejov1.RunnerInstance){registered(id)}, edit...)...))
	}
	return all
}

func states(n int, s api.RunnerStatus) map[int64]api.RunnerStatus {
	all := map[int64]api.RunnerStatus{}
	for k := range n {
		all[int64(k+1)] = s
	}
	return all
}

func TestSpawn(t *testing.T) {
	active := func(i *forgejov1.RunnerInstance) { i.Status.AtProvider.State = forgejov1.StateActive }
	cases := map[string]struct {
		reason    string
		waiting   int
		minimum   int
		limit     int32
		instances []forgejov1.RunnerInstance
		states    map[int64]api.RunnerStatus
		gone      map[int64]bool
		offline   time.Duration // for so long is the first
		want      int
	}{
		"Nothing":            {reason: "an empty queue needs no runner", limit: 10, want: 0},
		"Queue":              {reason: "each waiting job gets a runner", waiting: 3, limit: 10, want: 3},
		"PolledTwice":        {reason: "runners that have not connected yet count (ARC#4374)", waiting: 3, limit: 10, instances: group(3), states: states(3, api.RunnerOffline), want: 0},
		"NotRegisteredYet":   {reason: "nor do those that have not even registered", waiting: 1, limit: 10, instances: []forgejov1.RunnerInstance{instance("acme-linux-00000001")}, want: 0},
		"MinimumOnTop":       {reason: "spares are on top of what is busy (ARC#2968)", minimum: 2, limit: 6, instances: group(5, active), states: states(5, api.RunnerActive), want: 1},
		"MinimumOnTopDemand": {reason: "and on top of demand", waiting: 3, minimum: 2, limit: 10, want: 5},
		"Max":                {reason: "never above max", waiting: 50, limit: 10, want: 10},
		"NeverScaledDown":    {reason: "too many idle runners make a negative number, which is none", minimum: 1, limit: 10, instances: group(3), states: states(3, api.RunnerIdle), want: 0},
		"MaxLowered":         {reason: "below what is live it stops none and makes none", waiting: 5, limit: 2, instances: group(4, active), states: states(4, api.RunnerActive), want: 0},
		"MaxZero":            {reason: "0 makes no runners", waiting: 5, limit: 0, want: 0},
		"Stolen":             {reason: "a runner that took another's job is made up for", waiting: 1, limit: 10, instances: group(1, madeFor(job(1))), states: states(1, api.RunnerActive), want: 1},
		"FailedRecords":      {reason: "judged runners hold no slot (ARC#3685)", waiting: 2, limit: 2, instances: group(9, ended(forgejov1.StartupTimeout, -time.Minute)), want: 2},
		"NotReleased":        {reason: "one that is judged and runs still holds its slot", waiting: 2, limit: 2, instances: group(1, ended(forgejov1.JobTimeout, -time.Minute), func(i *forgejov1.RunnerInstance) { i.Status.AtProvider.Released = false }), want: 1},
		"NeverReleased":      {reason: "but not for ever, on a node that is dead", waiting: 2, limit: 2, instances: group(1, ended(forgejov1.JobTimeout, -6*time.Minute), func(i *forgejov1.RunnerInstance) { i.Status.AtProvider.Released = false }), want: 2},
		"Draining":           {reason: "a runner that drains takes no job, and holds its slot", waiting: 2, limit: 2, instances: group(1, func(i *forgejov1.RunnerInstance) { i.Spec.ForProvider.Drain = true }), states: states(1, api.RunnerIdle), want: 1},
		"Unlisted":           {reason: "one that the list leaves out, and that is there, is available", waiting: 1, limit: 10, instances: group(1), want: 0},
		"Gone":               {reason: "one that is gone is not, though it is not judged yet", waiting: 1, limit: 10, instances: group(1), gone: map[int64]bool{1: true}, want: 1},
		"RegisteredSince":    {reason: "one that was registered since the look and is gone took one of its jobs", waiting: 1, limit: 10, instances: group(1, registeredAt(time.Second)), gone: map[int64]bool{1: true}, want: 0},
		"ThroughSince":       {reason: "the same when it is judged already", waiting: 1, limit: 10, instances: group(1, registeredAt(0), ended(forgejov1.RunnerConsumed, time.Second)), want: 0},
		"GoneAndJudgedSince": {reason: "one that was gone before the look was not available, whenever it is judged", waiting: 1, limit: 10, instances: group(1, registeredAt(-time.Minute), ended(forgejov1.RunnerConsumed, time.Second)), want: 1},
		"IdleAfterActive":    {reason: "one that had a job gets no other, though its reports stall", waiting: 1, limit: 10, instances: group(1, activeSince(-time.Minute)), states: states(1, api.RunnerIdle), want: 1},
		"BusySinceTheLook":   {reason: "what it took since the look is among the jobs that the look saw", waiting: 1, limit: 10, instances: group(1, activeSince(time.Second)), states: states(1, api.RunnerIdle), want: 0},
		"PrunedSince":        {reason: "the same when its record is being deleted", waiting: 1, limit: 10, instances: group(1, ended(forgejov1.RunnerConsumed, time.Second), deleted), states: states(1, api.RunnerIdle), want: 0},
		"KilledByHand":       {reason: "one whose record is deleted before it has ended takes no job", waiting: 1, limit: 10, instances: group(1, deleted), states: states(1, api.RunnerIdle), want: 1},
		"Lost":               {reason: "one that was online and is not heard of any more takes none", waiting: 1, limit: 10, instances: group(1, onlineSince(-10*time.Minute)), states: states(1, api.RunnerOffline), offline: silent, want: 1},
		"OfflineForAMoment":  {reason: "it may be back in a moment", waiting: 1, limit: 10, instances: group(1, onlineSince(-10*time.Minute)), states: states(1, api.RunnerOffline), offline: silent - time.Second, want: 0},
		"NotOnlineYet":       {reason: "how long one may take to start is for startupTimeoutSeconds to say", waiting: 1, limit: 10, instances: group(1), states: states(1, api.RunnerOffline), offline: silent, want: 0},
		"ConsumedSince":      {reason: "the same when it is through already", waiting: 1, limit: 10, instances: group(1, ended(forgejov1.RunnerConsumed, time.Second)), states: states(1, api.RunnerIdle), want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Decide(State{
				Now: epoch.Add(2 * time.Second), Settings: settings(func(s *steading.RunnerPoolSpec) { s.MaxRunners = tc.limit }), Minimum: tc.minimum,
				Look: look(tc.states), Jobs: jobs(tc.waiting), Instances: tc.instances, Gone: tc.gone,
				Offline: map[int64]time.Time{1: epoch.Add(-tc.offline)},
			})
			if diff := cmp.Diff(tc.want, len(d.Spawn)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func registeredAt(after time.Duration) func(*forgejov1.RunnerInstance) {
	return func(i *forgejov1.RunnerInstance) { meta.SetExternalCreateSucceeded(i, epoch.Add(after)) }
}

func activeSince(after time.Duration) func(*forgejov1.RunnerInstance) {
	return func(i *forgejov1.RunnerInstance) {
		at := metav1.NewTime(epoch.Add(after))
		i.Status.AtProvider.ActiveTime = &at
	}
}

func onlineSince(after time.Duration) func(*forgejov1.RunnerInstance) {
	return func(i *forgejov1.RunnerInstance) {
		i.Status.AtProvider.OnlineTime = new(metav1.NewTime(epoch.Add(after)))
	}
}

// TestLostRunnersGiveWay to those that are wanted, at maxRunners; but none that is needed for nothing, or that has a job.
func TestLostRunnersGiveWay(t *testing.T) {
	const a, b = "acme-linux-00000001", "acme-linux-00000002"
	online := onlineSince(-time.Hour)
	drains := func(i *forgejov1.RunnerInstance) { i.Spec.ForProvider.Drain = true }
	cases := map[string]struct {
		reason    string
		waiting   int
		limit     int32
		gate      *Gate
		instances []forgejov1.RunnerInstance
		want      []string
	}{
		"Wanted":   {reason: "a job waits for a slot", waiting: 1, limit: 2, instances: group(2, online), want: []string{a}},
		"All":      {reason: "each slot is wanted", waiting: 3, limit: 2, instances: group(2, online), want: []string{a, b}},
		"Room":     {reason: "there is room besides", waiting: 1, limit: 3, instances: group(2, online)},
		"NoJob":    {reason: "they may come back", limit: 2, instances: group(2, online)},
		"Draining": {reason: "a slot will be free", waiting: 1, limit: 2, instances: append(group(1, online, drains), group(2, online)[1])},
		"HasAJob":  {reason: "it is for its own time to tell", waiting: 1, limit: 2, instances: group(2, online, activeSince(-time.Hour))},
		"Gated":    {reason: "none would be made", waiting: 1, limit: 2, gate: &Gate{}, instances: group(2, online)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			long := epoch.Add(-silent)
			s := State{
				Now: epoch, Settings: settings(func(s *steading.RunnerPoolSpec) { s.MaxRunners = tc.limit }), Gate: tc.gate, Instances: tc.instances,
				Look: look(states(2, api.RunnerOffline)), Jobs: jobs(tc.waiting), Offline: map[int64]time.Time{1: long, 2: long},
			}
			if diff := cmp.Diff(tc.want, Decide(s).Drain); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNothingIsDecidedByAnOldLook: a server that fails makes no runner.
func TestNothingIsDecidedByAnOldLook(t *testing.T) {
	s := State{Now: epoch, Settings: settings(), Jobs: jobs(3), Plan: Plan{Wants: make([]Want, 3)}}
	if d := Decide(s); len(d.Spawn) > 0 || len(d.Plan.Wants) != 3 {
		t.Errorf("it makes %d runners and leaves %d", len(d.Spawn), len(d.Plan.Wants))
	}
}

// TestAFreedSlotTakesWhatIsLeftOfTheLook: a look decides once; a runner that takes its job meanwhile asks for no other.
func TestAFreedSlotTakesWhatIsLeftOfTheLook(t *testing.T) {
	two := settings(func(s *steading.RunnerPoolSpec) { s.MaxRunners = 2 })
	s := State{Now: epoch, Settings: two, Look: look(nil), Jobs: jobs(3)}
	first := Decide(s)
	if len(first.Spawn) != 2 || first.Unserved != 1 {
		t.Fatalf("it makes %d runners and leaves %d jobs", len(first.Spawn), first.Unserved)
	}
	s.Plan = first.Plan
	s.Instances = []forgejov1.RunnerInstance{
		instance("acme-linux-00000001", madeFor(s.Jobs[0]), ended(forgejov1.RunnerConsumed, time.Second)),
		instance("acme-linux-00000002", madeFor(s.Jobs[1]), registered(2)),
	}
	second := Decide(s)
	if len(second.Spawn) != 1 || second.Spawn[0].Job.ID != 3 {
		t.Fatalf("the free slot makes %+v, not a runner for job 3", second.Spawn)
	}
	s.Plan = second.Plan
	s.Instances[1] = instance("acme-linux-00000002", madeFor(s.Jobs[1]), ended(forgejov1.RunnerConsumed, time.Second))
	if third := Decide(s); len(third.Spawn) != 0 {
		t.Errorf("the look's jobs are all served, and %d more runners are made", len(third.Spawn))
	}
}

// TestWhatIsLeftOfALookIsBySettingsOfThen: once they change, nothing is made of it, and another look is asked for, once.
func TestWhatIsLeftOfALookIsBySettingsOfThen(t *testing.T) {
	s := State{
		Now: epoch, Generation: 1, Settings: settings(func(s *steading.RunnerPoolSpec) { s.MaxRunners = 2 }), Look: look(nil), Jobs: jobs(5),
		Instances: group(2, activeSince(-time.Minute)),
	}
	left := Decide(s)
	if len(left.Spawn) != 0 || left.Unserved != 5 || left.Again {
		t.Fatalf("at max it is decided %+v", left)
	}
	s.Plan, s.Generation, s.Settings.Labels, s.Jobs, s.Instances = left.Plan, 2, []string{"arm"}, nil, nil
	edited := Decide(s)
	if len(edited.Spawn) != 0 || !edited.Again {
		t.Errorf("with other labels it is decided %+v", edited)
	}
	s.Plan = edited.Plan
	if same := Decide(s); len(same.Spawn) != 0 || same.Again {
		t.Errorf("by the same settings it is decided %+v", same)
	}
	s.Look, s.Jobs, s.Generation = &server.Look{Number: 2, Began: epoch}, jobs(1), 3
	if next := Decide(s); len(next.Spawn) != 1 || next.Again {
		t.Errorf("by the next look it is decided %+v", next)
	}
}

func TestAGateHoldsRunnersBackAndLetsThemGo(t *testing.T) {
	s := State{Now: epoch, Settings: settings(), Look: look(nil), Jobs: jobs(2), Gate: &Gate{Reason: steading.ReasonBackingOff, Message: "backing off"}}
	held := Decide(s)
	if len(held.Spawn) != 0 || held.Unserved != 2 {
		t.Fatalf("it makes %d runners behind the gate", len(held.Spawn))
	}
	s.Plan, s.Gate = held.Plan, nil
	if d := Decide(s); len(d.Spawn) != 2 {
		t.Errorf("it makes %d runners once the gate is open", len(d.Spawn))
	}
}

// TestWhatWaitsIsLessWhatWasTakenSince the look, which is as old as the interval at the most.
func TestWhatWaitsIsLessWhatWasTakenSince(t *testing.T) {
	cases := map[string]struct {
		reason    string
		instances []forgejov1.RunnerInstance
		states    map[int64]api.RunnerStatus
		want      int
	}{
		"Nothing":       {reason: "nothing happened", instances: group(2), states: states(2, api.RunnerIdle), want: 3},
		"Through":       {reason: "one was through with its job since", instances: group(1, ended(forgejov1.RunnerConsumed, time.Second)), states: states(1, api.RunnerIdle), want: 2},
		"Active":        {reason: "one has a job since", instances: group(1, activeSince(time.Second)), states: states(1, api.RunnerIdle), want: 2},
		"ActiveBefore":  {reason: "what it has was not waiting any more", instances: group(1, activeSince(-time.Minute)), states: states(1, api.RunnerActive), want: 3},
		"Failed":        {reason: "it took none", instances: group(1, ended(forgejov1.RunnerExited, time.Second)), states: states(1, api.RunnerIdle), want: 3},
		"ThroughBefore": {reason: "that was before the look", instances: group(1, ended(forgejov1.RunnerConsumed, -time.Minute)), want: 3},
		"Many":          {reason: "never less than none", instances: group(5, ended(forgejov1.RunnerConsumed, time.Second)), states: states(5, api.RunnerIdle), want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Decide(State{Now: epoch.Add(2 * time.Second), Settings: settings(), Look: look(tc.states), Jobs: jobs(3), Instances: tc.instances})
			if d.Waiting != tc.want {
				t.Errorf("%s: %d wait, want %d", tc.reason, d.Waiting, tc.want)
			}
		})
	}
}

// TestSurplusIsRetired: runners beyond what the queue and the minimum need go, once they have waited for too long; and none
// that is needed, has or had a job, or may just have taken one.
func TestSurplusIsRetired(t *testing.T) {
	online := func(ago time.Duration) func(*forgejov1.RunnerInstance) {
		return func(i *forgejov1.RunnerInstance) {
			i.Status.AtProvider.State, i.Status.AtProvider.OnlineTime = forgejov1.StateIdle, new(metav1.NewTime(epoch.Add(-ago)))
		}
	}
	idle := func(n int) []forgejov1.RunnerInstance {
		var all []forgejov1.RunnerInstance
		for k := range n { // The first is there the longest.
			id := int64(k + 1)
			all = append(all, instance(fmt.Sprintf("acme-linux-%08d", id), registered(id), online(time.Hour-time.Duration(k)*time.Minute)))
		}
		return all
	}
	const a, b, c = "acme-linux-00000001", "acme-linux-00000002", "acme-linux-00000003"
	cases := map[string]struct {
		reason    string
		timeout   int32
		minimum   int
		waiting   []api.Job
		instances []forgejov1.RunnerInstance
		status    api.RunnerStatus
		want      []string
	}{
		"All":        {reason: "nobody needs any", timeout: 600, instances: idle(3), status: api.RunnerIdle, want: []string{a, b, c}},
		"Never":      {reason: "0 keeps them, as the seed does", instances: idle(3), status: api.RunnerIdle},
		"Spares":     {reason: "the spares stay, the youngest", timeout: 600, minimum: 2, instances: idle(3), status: api.RunnerIdle, want: []string{a}},
		"Queue":      {reason: "those that the queue needs stay", timeout: 600, waiting: jobs(2), instances: idle(3), status: api.RunnerIdle, want: []string{a}},
		"AtMinimum":  {reason: "there is no surplus", timeout: 600, minimum: 3, instances: idle(3), status: api.RunnerIdle},
		"TooYoung":   {reason: "they have not waited for long", timeout: 3600 - 90, instances: idle(3), status: api.RunnerIdle, want: []string{a, b}},
		"Active":     {reason: "a look that sees them with a job counts", timeout: 600, instances: idle(3), status: api.RunnerActive},
		"Offline":    {reason: "what becomes of those the server does not hear of is for their own time to tell", timeout: 600, instances: idle(3), status: api.RunnerOffline},
		"HadOne":     {reason: "one that had a job has it until it is gone", timeout: 600, instances: group(1, online(time.Hour), activeSince(0)), status: api.RunnerIdle},
		"ForItsJob":  {reason: "one whose own job waits is needed", timeout: 600, waiting: jobs(1), instances: group(1, online(time.Hour), madeFor(job(1))), status: api.RunnerIdle},
		"Draining":   {reason: "once is enough", timeout: 600, instances: group(1, online(time.Hour), func(i *forgejov1.RunnerInstance) { i.Spec.ForProvider.Drain = true }), status: api.RunnerIdle},
		"OtherLabel": {reason: "one that is drained for its config is drained once", timeout: 600, instances: group(1, online(time.Hour), func(i *forgejov1.RunnerInstance) { i.Spec.ForProvider.Config.Labels = []string{"x"} }), status: api.RunnerIdle, want: []string{a}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := settings(func(s *steading.RunnerPoolSpec) { s.IdleTimeoutSeconds = tc.timeout })
			config := configOf(s, "")
			state := State{Now: epoch, Settings: s, Config: &config, Minimum: tc.minimum, Look: look(states(len(tc.instances), tc.status)), Jobs: tc.waiting, Instances: tc.instances}
			d := Decide(state)
			if diff := cmp.Diff(tc.want, d.Drain); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			state.Plan, state.Config = d.Plan, nil
			if again := Decide(state).Drain; len(again) > 0 {
				t.Errorf("the same look retires %v once more", again)
			}
		})
	}
}

// TestSparesAreRenewed, one at a time, before a job that they took late would be cut short; but none that is needed at once, and
// none while another one is not there yet.
func TestSparesAreRenewed(t *testing.T) {
	const a, b = "acme-linux-00000001", "acme-linux-00000002"
	made := func(ago time.Duration) func(*forgejov1.RunnerInstance) {
		return func(i *forgejov1.RunnerInstance) { i.CreationTimestamp = metav1.NewTime(epoch.Add(-ago)) }
	}
	half := 11400 * time.Second / 2
	online, old := onlineSince(-time.Minute), made(half)
	cases := map[string]struct {
		reason    string
		waiting   int
		minimum   int
		gate      *Gate
		instances []forgejov1.RunnerInstance
		states    map[int64]api.RunnerStatus
		want      []string
	}{
		"Old":        {reason: "it is past half of its life", minimum: 1, instances: group(1, online, old), states: states(1, api.RunnerIdle), want: []string{a}},
		"Young":      {reason: "it is not", minimum: 1, instances: group(1, online, made(half-time.Second)), states: states(1, api.RunnerIdle)},
		"OneAtATime": {reason: "the others wait for jobs meanwhile", minimum: 2, instances: append(group(1, online, old), group(2, online, made(half+time.Second))[1]), states: states(2, api.RunnerIdle), want: []string{b}},
		"Surplus":    {reason: "one that is kept beyond the minimum is not made up for", instances: group(1, online, old), states: states(1, api.RunnerIdle)},
		"Queue":      {reason: "a job waits for it", waiting: 1, minimum: 1, instances: group(2, online, old), states: states(2, api.RunnerIdle)},
		"Starting":   {reason: "the one before it is not made up for yet", minimum: 2, instances: append(group(1, online, old), group(2)[1]), states: map[int64]api.RunnerStatus{1: api.RunnerIdle, 2: api.RunnerOffline}},
		"Lacking":    {reason: "nor is it here", minimum: 2, instances: group(1, online, old), states: states(1, api.RunnerIdle)},
		"Active":     {reason: "it has a job", instances: group(1, online, old), states: states(1, api.RunnerActive)},
		"Gated":      {reason: "none would be made in its place", minimum: 1, gate: &Gate{}, instances: group(1, online, old), states: states(1, api.RunnerIdle)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := State{Now: epoch, Settings: settings(), Gate: tc.gate, Minimum: tc.minimum, Look: look(tc.states), Jobs: jobs(tc.waiting), Instances: tc.instances}
			if diff := cmp.Diff(tc.want, Decide(s).Drain); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTargetedRunnersAndSpares(t *testing.T) {
	targeted := func(i *forgejov1.RunnerInstance) { i.Spec.ForProvider.Config.Assignment = steading.AssignTargeted }
	cases := map[string]struct {
		reason    string
		minimum   int
		waiting   []api.Job
		instances []forgejov1.RunnerInstance
		states    map[int64]api.RunnerStatus
		want      []int64 // ids of jobs, 0 for a spare
	}{
		"Each":       {reason: "each job gets its own", waiting: jobs(2), want: []int64{1, 2}},
		"SpareTakes": {reason: "a spare takes the oldest, and is made up for", minimum: 1, waiting: jobs(2), instances: group(1, targeted), states: states(1, api.RunnerIdle), want: []int64{2, 0}},
		"OfNoUse":    {reason: "a runner whose job was cancelled takes no other", waiting: []api.Job{job(2)}, instances: group(1, targeted, madeFor(job(1))), states: states(1, api.RunnerIdle), want: []int64{2}},
		"Covered":    {reason: "a job that has its runner gets no second", waiting: jobs(2), instances: group(1, targeted, madeFor(job(1))), states: states(1, api.RunnerOffline), want: []int64{2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Decide(State{Now: epoch, Settings: settings(), Minimum: tc.minimum, Look: look(tc.states), Jobs: tc.waiting, Instances: tc.instances})
			if diff := cmp.Diff(tc.want, idsOf(d.Spawn)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func idsOf(wants []Want) []int64 {
	var ids []int64
	for _, w := range wants {
		if w.Job == nil {
			ids = append(ids, 0)
			continue
		}
		ids = append(ids, w.Job.ID)
	}
	return ids
}

func TestOwnersShareWhatThereIs(t *testing.T) {
	owner := func(o int64) func(*api.Job) { return func(j *api.Job) { j.OwnerID = o } }
	queue := []api.Job{job(1, owner(1)), job(2, owner(1)), job(3, owner(1)), job(4, owner(2)), job(5, owner(3))}
	s := State{
		Now: epoch, Look: look(nil), Jobs: queue,
		Settings: settings(func(s *steading.RunnerPoolSpec) {
			s.MaxRunners, s.Assignment, s.Fairness = 4, steading.AssignTargeted, steading.FairnessOwner
		}),
		// Owner 3 has a runner already.
		Instances: []forgejov1.RunnerInstance{instance("acme-linux-00000009", madeFor(job(9, owner(3))), registered(9), activeSince(-time.Hour))},
	}
	if diff := cmp.Diff([]int64{1, 4, 2}, idsOf(Decide(s).Spawn)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	s.Settings.Fairness = steading.FairnessNone
	if diff := cmp.Diff([]int64{1, 2, 3}, idsOf(Decide(s).Spawn)); diff != "" {
		t.Errorf("without fairness the oldest come first: -want, +got:\n%s", diff)
	}
}

func TestDrain(t *testing.T) {
	template := func(json string) func(*steading.RunnerPoolSpec) {
		return func(s *steading.RunnerPoolSpec) { s.Pod.Template = runtime.RawExtension{Raw: []byte(json)} }
	}
	cases := map[string]struct {
		reason    string
		before    func(*steading.RunnerPoolSpec)
		edit      func(*steading.RunnerPoolSpec)
		instances []forgejov1.RunnerInstance
		states    map[int64]api.RunnerStatus
		want      int
	}{
		"Numbers": {reason: "what runners are not made with drains none", edit: func(s *steading.RunnerPoolSpec) {
			s.MinRunners, s.MaxRunners, s.SuccessfulJobsHistoryLimit, s.FailedJobsHistoryLimit, s.PollIntervalSeconds = 2, 7, 9, 9, 60
			s.Fairness, s.Schedule = steading.FairnessOwner, []steading.ScheduledMinimum{{Start: "0 8 * * *", DurationSeconds: 60}}
		}, instances: group(2), want: 0},
		"Labels":       {reason: "other labels drain", edit: func(s *steading.RunnerPoolSpec) { s.Labels = []string{"arm"} }, instances: group(2), want: 2},
		"LabelsOrder":  {reason: "labels are a set", before: func(s *steading.RunnerPoolSpec) { s.Labels = []string{"a", "b"} }, edit: func(s *steading.RunnerPoolSpec) { s.Labels = []string{"b", "a"} }, instances: group(1), want: 0},
		"Image":        {reason: "another image drains", edit: func(s *steading.RunnerPoolSpec) { s.Pod.RunnerImage = "runner:13" }, instances: group(2), want: 2},
		"Template":     {reason: "another template drains", before: template(`{"spec":{"a":1}}`), edit: template(`{"spec":{"a":2}}`), instances: group(1), want: 1},
		"SameTemplate": {reason: "the same template in other words does not", before: template(`{"spec":{"a":1,"b":2}}`), edit: template(`{ "spec": {"b":2, "a":1} }`), instances: group(1), want: 0},
		"Suspend":      {reason: "suspending drains", edit: func(s *steading.RunnerPoolSpec) { s.Suspend = true }, instances: group(2), states: states(2, api.RunnerIdle), want: 2},
		"JobInHand":    {reason: "a runner with a job in hand is left to finish it", edit: func(s *steading.RunnerPoolSpec) { s.Suspend = true }, instances: group(2), states: map[int64]api.RunnerStatus{1: api.RunnerActive, 2: api.RunnerIdle}, want: 1},
		"HadAJob":      {reason: "and so is one that stopped reporting on it", edit: func(s *steading.RunnerPoolSpec) { s.Labels = []string{"arm"} }, instances: group(1, activeSince(-time.Hour)), states: states(1, api.RunnerIdle), want: 0},
		"Stranger": {reason: "on the server that the pool moved to another runner has its number", edit: func(s *steading.RunnerPoolSpec) { s.Forgejo.URL = "https://new.example.com" },
			instances: group(2), states: map[int64]api.RunnerStatus{1: api.RunnerActive, 2: api.RunnerIdle}, want: 2},
		"Judged": {reason: "history is not drained", edit: func(s *steading.RunnerPoolSpec) { s.Suspend = true }, instances: group(2, ended(forgejov1.RunnerConsumed, 0)), want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := settings(), settings()
			if tc.before != nil {
				tc.before(&before)
				tc.before(&after)
			}
			tc.edit(&after)
			for n := range tc.instances {
				tc.instances[n].Spec.ForProvider.Config = configOf(before, "")
			}
			config := configOf(after, "")
			d := Decide(State{Now: epoch, Settings: after, Config: &config, Look: look(tc.states), Instances: tc.instances})
			if diff := cmp.Diff(tc.want, len(d.Drain)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHistoryKeepsTheNewest(t *testing.T) {
	var all []forgejov1.RunnerInstance
	for n, reason := range []forgejov1.RunnerReason{forgejov1.RunnerConsumed, forgejov1.RunnerConsumed, forgejov1.RunnerConsumed, forgejov1.RunnerExited, forgejov1.RunnerExited} {
		all = append(all, instance(fmt.Sprintf("acme-linux-%d", n), ended(reason, time.Duration(n)*time.Minute), marked))
	}
	all = append(all,
		instance("acme-linux-uncounted", ended(forgejov1.RunnerConsumed, -time.Hour)),
		instance("acme-linux-unreleased", ended(forgejov1.RunnerConsumed, -time.Hour), marked, func(i *forgejov1.RunnerInstance) { i.Status.AtProvider.Released = false }))
	s := State{Now: epoch, Settings: settings(func(s *steading.RunnerPoolSpec) { s.SuccessfulJobsHistoryLimit, s.FailedJobsHistoryLimit = 2, 0 }), Instances: all}
	for _, tc := range []struct {
		reason string
		look   *server.Look
		want   []string
	}{
		{reason: "all had ended before the look", look: &server.Look{Number: 2, Began: epoch.Add(time.Hour)}, want: []string{"acme-linux-0", "acme-linux-3", "acme-linux-4"}},
		{reason: "what ended since the look may have taken one of its jobs", look: &server.Look{Number: 1, Began: epoch.Add(4 * time.Minute)}, want: []string{"acme-linux-0", "acme-linux-3"}},
		{reason: "without a look nobody knows"},
	} {
		s.Look = tc.look
		if diff := cmp.Diff(tc.want, Decide(s).Delete); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
		}
	}
}

func TestReasons(t *testing.T) {
	s := State{Settings: settings()}
	got := reasons(s, Decision{Unserved: 2}, map[string]int{"gpu": 1})
	if diff := cmp.Diff([]string{"at maxRunners 10: 2 jobs wait", "no pool serves label gpu: 1 job waits"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	s.Gate = gateOf(s.Settings, Tally{Failures: 3, Next: epoch.Add(time.Minute)}, epoch)
	got = reasons(s, Decision{Unserved: 1}, nil)
	if diff := cmp.Diff([]string{"backing off until 09:01:00Z, since the last 3 tries failed without a job: 1 job waits"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if gateOf(s.Settings, Tally{Failures: 3, Next: epoch}, epoch) != nil {
		t.Error("the time is over, and nothing is made still")
	}
}
