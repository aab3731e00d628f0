package pool

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/forgejo/server"
	"github.com/steading-dev/steading/providers/internal/kit"
	"github.com/steading-dev/steading/providers/internal/referred"
)

// A Guard keeps the guard rails of the namespaces that runners run in. An error may have a method Reason, which is then the
// reason of the condition RunnersMade.
type Guard interface {
	// Ensure that the pool may make runners in its job namespace, and that the guard rails stand there.
	Ensure(ctx context.Context, r *forgejov1.Runner) error
	// Release the job namespace of a pool that goes. One that is gone is no error.
	Release(ctx context.Context, r *forgejov1.Runner) error
}

// CheckFunc returns why runners cannot be made of a config in a namespace with these labels.
type CheckFunc func(c forgejov1.RunnerConfig, namespaceLabels map[string]string) error

// TryFunc returns whether the API server would make what a runner runs in, without making it. Without an error either it is
// not known. The error may have a method Reason, which is then the reason of the condition RunnersMade.
type TryFunc func(ctx context.Context, i *forgejov1.RunnerInstance) (taken bool, err error)

// Informed has a Runner woken when what it refers to changes.
type Informed interface {
	Of(ctx context.Context, name string, subjects ...referred.Subject)
}

// A Reconciler keeps pools, one at a time. Requests name the Runner.
type Reconciler struct {
	client   client.Client // cached
	uncached client.Reader
	log      logging.Logger
	clock    clock.WithTicker
	poll     kit.Poll
	report   *kit.ClaimReporter
	rights   referred.Rights
	informed Informed
	servers  *server.Servers
	guard    Guard
	check    CheckFunc
	try      TryFunc
	kinds    Kinds
	claims   *Claims
	memories *memories
}

// Reconcile watches the queue of a pool's server, and makes, drains and forgets its runners.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	runner := &forgejov1.Runner{}
	if err := r.client.Get(ctx, req.NamespacedName, runner); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(ctx, req.NamespacedName)
		}
		return reconcile.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "cannot read Runner %s", req.Name)
	}
	p := &pass{Reconciler: r, runner: runner, key: req.NamespacedName, memory: r.memories.of(req.NamespacedName), now: r.clock.Now()}
	switch {
	case meta.IsPaused(runner):
		forgetQueue(p.key)
		p.abstain(ctx)
		return reconcile.Result{}, nil
	case meta.WasDeleted(runner):
		return p.leave(ctx)
	}
	err := p.addFinalizer(ctx)
	if err == nil {
		err = p.run(ctx)
	}
	if !p.bid {
		p.abstain(ctx)
	}
	wait, statusErr := p.writeStatus(ctx, err)
	if err = errors.Join(err, p.untidy, statusErr); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: p.next(wait)}, nil
}

// forget a pool that is gone.
func (r *Reconciler) forget(ctx context.Context, key client.ObjectKey) {
	if m := r.memories.of(key); m.session != nil {
		m.session.Unsubscribe(key)
	}
	r.informed.Of(ctx, key.Name)
	r.claims.Leave(key)
	r.memories.forget(key)
	forgetMetrics(key)
}

// A pass is one look at a pool and what came of it.
type pass struct {
	*Reconciler
	runner *forgejov1.Runner
	key    client.ObjectKey
	memory *memory
	now    time.Time

	session   *server.Session
	trouble   error // Why there is no session by the token that is there now.
	instances []forgejov1.RunnerInstance
	tally     Tally
	state     State
	decision  Decision
	unserved  map[string]int
	// bid is whether the pool did for the jobs of its server.
	bid bool
	// untidy is why runners that are there, or what is left of them, could not be seen to, though others are made.
	untidy error
	// again is when the pass has to be made again for what nothing wakes it for. Zero: never.
	again time.Duration
}

// run the pool once.
func (p *pass) run(ctx context.Context) error {
	if err := p.connect(ctx); err != nil {
		return err
	}
	if err := p.readInstances(ctx); err != nil {
		return err
	}
	p.noteNamespaces()
	if err := p.countVerdicts(ctx); err != nil {
		return err
	}
	if err := p.readState(ctx); err != nil {
		return err
	}
	p.decision = Decide(p.state)
	p.memory.read = p.memory.read || p.memory.plan.Look != p.decision.Plan.Look
	p.memory.plan = p.decision.Plan
	if p.decision.Again {
		p.session.Again()
	}
	return p.act(ctx)
}

// addFinalizer before anything is made. The composer desires it; a Runner that was made by hand has none.
func (p *pass) addFinalizer(ctx context.Context) error {
	before := p.runner.DeepCopy()
	if !controllerutil.AddFinalizer(p.runner, names.Finalizer) {
		return nil
	}
	return errors.Wrap(p.client.Patch(ctx, p.runner, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})), "cannot add the finalizer")
}

// next says when to look again at what nothing else wakes: when the pool may try again, and when its schedule may have moved on.
func (p *pass) next(wait time.Duration) time.Duration {
	after := p.poll.After(true)
	if wait > 0 {
		after = min(after, wait)
	}
	if p.again > 0 {
		after = min(after, p.again)
	}
	if t := p.tally.Next.Sub(p.now); t > 0 {
		after = min(after, t)
	}
	return after
}
