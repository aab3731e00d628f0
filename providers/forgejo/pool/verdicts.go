package pool

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
)

// countVerdicts that are not counted yet, and tell of them. The mark on the record comes first, and says what is counted since:
// ending between it and the status neither loses a verdict nor counts it twice. A record that the cache shows as it was before
// it was marked is not marked again, since it changed.
func (p *pass) countVerdicts(ctx context.Context) error {
	p.tally = p.tallied()
	if p.memory.recent == nil {
		p.memory.recent = p.runner.Status.AtProvider.Recent
	}
	for _, i := range uncounted(p.instances) {
		next := p.tally.count(i, time.Duration(p.runner.Spec.ForProvider.Settings.PollIntervalSeconds)*time.Second)
		err := p.mark(ctx, i, next)
		if kerrors.IsConflict(err) {
			// It will be seen as it is.
			continue
		}
		if client.IgnoreNotFound(err) != nil {
			return errors.Wrapf(err, "cannot mark the verdict of RunnerInstance %s as counted", i.Name)
		}
		p.tally, p.memory.tally = next, next
		p.remember(i)
		p.tell(ctx, i)
	}
	p.lift()
	return nil
}

// lift the wait for the next try when another token is there than the one by which the last runner could not be made: it may have
// been refused. The failures stay, so that the next wait is no shorter. Which wait was lifted is kept, since the cache may show it
// for a while.
func (p *pass) lift() {
	if e := lastFailed(p.memory.recent); p.memory.replaced && e != nil && forgejov1.RunnerReason(e.Reason) == forgejov1.CreateFailed {
		p.memory.lifted = p.tally.Next
	}
	p.memory.replaced = false
	if p.tally.Next.Equal(p.memory.lifted) {
		p.tally.Next = time.Time{}
	}
}

// tallied so far: by the status, by the records and by memory, whichever counted most.
func (p *pass) tallied() Tally {
	o := p.runner.Status.AtProvider
	t := Tally{Verdicts: p.runner.Status.Counted, Failures: o.ConsecutiveFailures, Raised: p.runner.Status.Raised}
	if o.NextTryTime != nil {
		t.Next = o.NextTryTime.UTC()
	}
	if p.memory.tally.Verdicts > t.Verdicts {
		t = p.memory.tally
	}
	return tallied(t, p.instances)
}

func (p *pass) mark(ctx context.Context, i *forgejov1.RunnerInstance, t Tally) error {
	before := i.DeepCopy()
	metav1.SetMetaDataAnnotation(&i.ObjectMeta, names.AnnotationCounted, t.mark())
	return p.client.Patch(ctx, i, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// remember a runner that ended, among the last that did, the newest first. The status is written from memory: the cache may show
// it as it was before the last pass.
func (p *pass) remember(i *forgejov1.RunnerInstance) {
	o := i.Status.AtProvider
	e := steading.EndedRunner{Name: i.Name, Reason: string(o.Reason), Message: o.Message}
	if o.CompletionTime != nil {
		e.Time = *o.CompletionTime
	}
	all := slices.Insert(slices.Clone(p.memory.recent), 0, e)
	p.memory.recent = all[:min(len(all), mostRecent)]
}

// tell of a verdict.
func (p *pass) tell(ctx context.Context, i *forgejov1.RunnerInstance) {
	o := i.Status.AtProvider
	e := event.Event{Type: event.TypeNormal, Reason: event.Reason(o.Reason), Message: "runner " + i.Name}
	if o.Message != "" {
		e.Message += ": " + o.Message
	}
	if o.Phase == forgejov1.RunnerFailed {
		e.Type = event.TypeWarning
	}
	p.report.Event(ctx, claimOf(p.runner), e)
	countVerdict(p.key, i)
}
