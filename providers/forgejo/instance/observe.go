package instance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/forgejo/child"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// external is one look at a runner.
type external struct {
	*connector
	mark *mark
	// attempted is whether a Create was begun before this look, which may have registered the runner.
	attempted bool
	// child as Observe saw it, and whether it is being deleted.
	child     child.State
	childGoes bool
}

var _ managed.TypedExternalClient[*v1alpha1.RunnerInstance] = &external{}

// Disconnect does nothing: sessions outlive a look.
func (e *external) Disconnect(context.Context) error { return nil }

// Observe says what became of the runner. It exists once it has a registration that is recorded and a child; what is missing
// Create makes, and what is left of one that was judged Update takes away.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.RunnerInstance) (managed.ExternalObservation, error) {
	e.attempted = !meta.GetExternalCreatePending(mg).IsZero()
	st := &mg.Status.AtProvider
	switch {
	case meta.WasDeleted(mg):
		return e.observeDeletion(ctx, mg)
	case st.Released:
		e.forget(mg)
		kit.After(ctx, e.o.Poll.After(true))
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	case st.Reason != "":
		return managed.ExternalObservation{ResourceExists: true}, nil
	default:
		st.Phase = v1alpha1.RunnerPending
		return e.observeUndecided(ctx, mg)
	}
}

// observeUndecided looks at a runner that has no verdict yet.
func (e *external) observeUndecided(ctx context.Context, mg *v1alpha1.RunnerInstance) (managed.ExternalObservation, error) {
	p, st := mg.Spec.ForProvider, &mg.Status.AtProvider
	if st.Registration == nil {
		if p.Drain {
			return e.conclude(ctx, mg, verdict{reason: v1alpha1.Drained, message: "its pool did not want it any more before it was registered"})
		}
		if v := e.unregistered(ctx, mg); v.reason != "" {
			return e.conclude(ctx, mg, v)
		}
		mg.SetConditions(xpv2.Creating().WithObservedGeneration(mg.GetGeneration()))
		return managed.ExternalObservation{}, nil
	}
	made, err := e.observeChild(ctx, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	v, err := e.judge(ctx, mg)
	switch {
	case err != nil:
		return managed.ExternalObservation{}, err
	case v.reason != "":
		return e.conclude(ctx, mg, v)
	}
	e.markReady(mg)
	if !made && !p.Drain {
		return managed.ExternalObservation{}, nil
	}
	kit.After(ctx, min(v.again, e.o.Poll.After(true)))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

// unregistered is the verdict on a runner that could not be registered in time. A server that does not answer its looks either
// decides nothing.
func (e *external) unregistered(ctx context.Context, mg *v1alpha1.RunnerInstance) verdict {
	tried := mg.GetCondition(xpv2.TypeSynced)
	limit := mg.Spec.ForProvider.Config.StartupTimeoutSeconds
	startup := time.Duration(limit) * time.Second
	if tried.Status != corev1.ConditionFalse || e.o.Clock.Since(mg.CreationTimestamp.Time) < startup {
		return verdict{}
	}
	s, err := e.session(ctx, mg)
	if err != nil {
		return verdict{} // Create says why.
	}
	if _, looked := s.Listed(0); looked.IsZero() || e.o.Clock.Now().Before(excused(s, startup)) {
		return verdict{}
	}
	msg := fmt.Sprintf("it was not registered within startupTimeoutSeconds, %d", limit)
	return verdict{reason: v1alpha1.StartupTimeout, message: explain(msg, strings.TrimPrefix(tried.Message, "create failed: "))}
}

// excused is until when no runner is blamed for that the server has not heard of it: it was away, and gets as long as that to, but no
// longer than a runner has from the start.
func excused(s Server, startup time.Duration) time.Time {
	at, outage := s.Recovered()
	return at.Add(min(outage, startup))
}

// observeChild notes what is seen of the child, and reports whether there ever was one.
func (e *external) observeChild(ctx context.Context, mg *v1alpha1.RunnerInstance) (made bool, err error) {
	st := &mg.Status.AtProvider
	if made := e.mark.child; made != "" && st.Child == nil {
		// It was made a moment ago: caches need not have it, and the API server need not be asked.
		st.Child, e.child = reference(mg, made), child.State{Phase: child.Starting, UID: made}
		return true, nil
	}
	if e.child, err = e.children.state(ctx, mg); err != nil {
		return false, err
	}
	if e.child.Phase == child.Missing && st.Child == nil {
		// It was not made yet, which is no end.
		e.child.Phase = child.Starting
		return false, nil
	}
	if st.Child == nil {
		st.Child = reference(mg, e.child.UID)
	}
	if t := e.child.StartTime; !t.IsZero() && st.StartTime == nil {
		st.StartTime = &metav1.Time{Time: t}
	}
	st.Message = ""
	if e.child.Phase == child.Starting {
		st.Message = kit.CleanMessage(e.child.Message)
	}
	return true, nil
}

func reference(mg *v1alpha1.RunnerInstance, uid types.UID) *v1alpha1.ChildReference {
	return &v1alpha1.ChildReference{Kind: child.KindOf(mg.Spec.ForProvider.Config).Kind, Name: mg.Name, UID: uid}
}

// judge the runner by what the last look at the server says of it, and, if that suggests anything, by what the server says of
// it now.
func (e *external) judge(ctx context.Context, mg *v1alpha1.RunnerInstance) (verdict, error) {
	st := &mg.Status.AtProvider
	s, err := e.session(ctx, mg)
	if err != nil {
		return verdict{}, errors.Wrap(err, "cannot ask the server about the runner")
	}
	s.Track(st.Registration.ID, client.ObjectKeyFromObject(mg))

	r, began := s.Listed(st.Registration.ID)
	if r != nil && r.UUID != st.Registration.UUID {
		r = nil // It is another one's.
	}
	if r != nil {
		e.heard(mg, *r)
	}
	unlisted := r == nil && !began.IsZero() && began.After(e.mark.registered)
	v, err := e.sighted(ctx, s, mg)
	if err != nil || v.reason == "" && !unlisted && !e.leaves(mg) && st.State != v1alpha1.StateGone {
		return v, err
	}
	if err := e.ask(ctx, s, mg); err != nil {
		return verdict{}, err
	}
	v, err = e.sighted(ctx, s, mg)
	switch {
	case err == nil && v.reason == v1alpha1.RunnerExited:
		return e.excuse(ctx, s, mg, v)
	case err != nil, !v.free, st.State == v1alpha1.StateGone:
		return v, err
	}
	if free, err := e.free(ctx, s, mg); err != nil || !free {
		return verdict{again: apart}, err
	}
	// The door is shut first: what takes a job now has it for good.
	if err := s.Deregister(ctx, st.Registration.ID); err != nil {
		return verdict{}, errors.Wrap(err, "cannot drain the runner")
	}
	st.State = v1alpha1.StateGone
	return v, nil
}

// leaves reports whether a runner is to end once it is certain that it has no job: its pool drains it, or it had its time.
func (e *external) leaves(mg *v1alpha1.RunnerInstance) bool {
	p := mg.Spec.ForProvider
	return p.Drain || mg.Status.AtProvider.ActiveTime == nil && e.o.Clock.Since(mg.CreationTimestamp.Time) >= time.Duration(p.Config.JobTimeoutSeconds)*time.Second
}

// excuse a runner that ended without a job, if the one job that it was to take is why: when that does not wait any more, the
// runner finds nothing and ends at once. That is no failure of it.
func (e *external) excuse(ctx context.Context, s Server, mg *v1alpha1.RunnerInstance, v verdict) (verdict, error) {
	handle := child.Handle(mg)
	if handle == "" {
		return v, nil
	}
	status, err := s.Job(ctx, handle, mg.Spec.ForProvider.Config.Labels, e.mark.ended)
	if err != nil {
		return verdict{}, errors.Wrap(err, "cannot judge the runner by its job")
	}
	return v.excused(mg.Spec.ForProvider.Job.ID, status), nil
}

// ask the server about the one registration. Any error but that there is none is no answer. A server whose database was restored
// gives numbers out again: what has the number is gone if it has another UUID.
func (e *external) ask(ctx context.Context, s Server, mg *v1alpha1.RunnerInstance) error {
	st := &mg.Status.AtProvider
	r, err := s.Runner(ctx, st.Registration.ID)
	switch {
	case errors.Is(err, api.ErrGone), err == nil && r.UUID != st.Registration.UUID:
		st.State = v1alpha1.StateGone
	case err != nil:
		return errors.Wrap(err, "cannot judge the runner")
	default:
		e.heard(mg, r)
	}
	idle := e.leaves(mg) && (st.State == v1alpha1.StateIdle || st.State == v1alpha1.StateOffline)
	if idle && e.mark.idle.IsZero() {
		if e.mark.tasks, err = e.tasks(ctx, s, mg); err != nil {
			return err
		}
	}
	since(&e.mark.idle, idle, e.o.Clock.Now())
	return nil
}

// free reports whether it is certain that a runner which the server calls idle has no job: it is called so for about a second
// after it took one, but the job runs then. When any job that it could have taken began since the server first called it idle,
// its time starts anew.
func (e *external) free(ctx context.Context, s Server, mg *v1alpha1.RunnerInstance) (bool, error) {
	if mg.Status.AtProvider.OnlineTime == nil {
		return true, nil
	}
	now, err := e.tasks(ctx, s, mg)
	if err != nil {
		return false, err
	}
	for task := range now {
		if !e.mark.tasks[task] {
			e.mark.tasks, e.mark.idle = now, e.o.Clock.Now()
			return false, nil
		}
	}
	return true, nil
}

// tasks that run now of jobs that the runner could take.
func (e *external) tasks(ctx context.Context, s Server, mg *v1alpha1.RunnerInstance) (map[int64]bool, error) {
	jobs, err := s.Jobs(ctx, mg.Spec.ForProvider.Config.Labels)
	if err != nil {
		return nil, errors.Wrap(err, "cannot tell whether the runner has a job")
	}
	running := map[int64]bool{}
	for _, j := range jobs {
		if j.Status == api.JobRunning {
			running[j.TaskID] = true
		}
	}
	return running, nil
}

// heard notes what the server says of a runner.
func (e *external) heard(mg *v1alpha1.RunnerInstance, r api.Runner) {
	st := &mg.Status.AtProvider
	st.State = stateOf(r)
	if mg.Spec.ForProvider.Config.Forgejo.Scope.User != nil && st.Registration.OwnerID == 0 {
		st.Registration.OwnerID = r.OwnerID // Records of before it was kept have none.
	}
	now := metav1.NewTime(e.o.Clock.Now())
	if st.OnlineTime == nil && heardOf(r) {
		st.OnlineTime = &now
	}
	if st.ActiveTime == nil && st.State == v1alpha1.StateActive {
		st.ActiveTime = &now
	}
}

// sighted is the verdict on what is known now.
func (e *external) sighted(ctx context.Context, from Server, mg *v1alpha1.RunnerInstance) (verdict, error) {
	st, p, now := mg.Status.AtProvider, mg.Spec.ForProvider, e.o.Clock.Now()
	s := sight{
		now: now, created: mg.CreationTimestamp.Time, state: st.State,
		online: st.OnlineTime != nil, active: st.ActiveTime != nil, child: e.child, drain: p.Drain,
		goneFor:  since(&e.mark.gone, st.State == v1alpha1.StateGone, now),
		endedFor: since(&e.mark.ended, e.child.Phase == child.Ended || e.child.Phase == child.Missing, now),
		startup:  time.Duration(p.Config.StartupTimeoutSeconds) * time.Second,
		lifetime: time.Duration(p.Config.JobTimeoutSeconds) * time.Second,
	}
	s.excused = excused(from, s.startup)
	if st.ActiveTime != nil {
		s.job = st.ActiveTime.Time
	}
	if !e.mark.idle.IsZero() {
		s.idleFor = now.Sub(e.mark.idle)
	}
	if st.Child != nil && e.child.Phase == child.Starting && !s.online {
		var err error
		if s.credentialsLost, err = e.credentialsLost(ctx, mg); err != nil {
			return verdict{}, err
		}
	}
	return s.judge(), nil
}

// recheck of a credential that a child which starts needs. It cannot be watched: the provider may not list Secrets everywhere.
const recheck = 30 * time.Second

// credentialsLost reports whether the credential is gone, as far as it was looked lately.
func (e *external) credentialsLost(ctx context.Context, mg *v1alpha1.RunnerInstance) (bool, error) {
	if now := e.o.Clock.Now(); now.Sub(e.mark.seen) >= recheck {
		secret, err := e.children.credentials(ctx, mg)
		if err != nil || secret == nil {
			return err == nil, err
		}
		e.mark.secret, e.mark.seen = secret.UID, now
	}
	return false, nil
}

// conclude writes a verdict down, before anything follows from it.
func (e *external) conclude(ctx context.Context, mg *v1alpha1.RunnerInstance, v verdict) (managed.ExternalObservation, error) {
	now := metav1.NewTime(e.o.Clock.Now())
	st := &mg.Status.AtProvider
	if v.reason == v1alpha1.StartupTimeout && e.child.Message == "" {
		v.message = explain(v.message, e.children.refusal(ctx, mg))
	}
	st.Phase, st.Reason, st.Message, st.CompletionTime = v.phase(), v.reason, kit.CleanMessage(v.message), &now
	kit.MarkNotReady(mg, xpv2.ConditionReason(v.reason), st.Message)
	if err := e.children.client.Status().Update(ctx, mg); err != nil {
		return managed.ExternalObservation{}, errors.Wrap(err, "cannot write the verdict down")
	}
	return managed.ExternalObservation{ResourceExists: true}, nil
}

// markReady while the server has heard of the runner.
func (e *external) markReady(mg *v1alpha1.RunnerInstance) {
	if mg.Status.AtProvider.OnlineTime != nil {
		kit.MarkReady(mg)
		return
	}
	mg.SetConditions(xpv2.Creating().WithObservedGeneration(mg.GetGeneration()))
}

// forget what is remembered of a runner that has nothing left on the server.
func (e *external) forget(mg *v1alpha1.RunnerInstance) {
	e.servers.Untrack(client.ObjectKeyFromObject(mg))
	e.marks.forget(mg.UID)
}
