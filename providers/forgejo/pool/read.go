package pool

import (
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	forgejov1 "github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/forgejo/server"
)

const (
	// caughtUp is how long a cache may take to show a runner that was made; then it is looked whether the runner is there.
	caughtUp = 10 * time.Second
	// atATime is how many requests are made at once for one pool.
	atATime = 8
)

// readInstances of the pool: from the cache, with those that were made and that it does not show yet. Until the first look is
// acted on they are read uncached, since another process may have made some a moment ago; and again when it is not known of one
// whether it was made, until the next look is.
func (p *pass) readInstances(ctx context.Context) error {
	all, err := p.list(ctx, p.client)
	if err != nil {
		return err
	}
	if !p.memory.read {
		there, err := p.list(ctx, p.uncached)
		if err != nil {
			return err
		}
		for _, i := range there {
			p.memory.made[i.Name] = madeRunner{instance: i, at: p.now}
		}
	}
	for n := range all {
		delete(p.memory.made, all[n].Name)
	}
	for name, m := range p.memory.made {
		there, err := p.isThere(ctx, m)
		if err != nil {
			return err
		}
		if !there {
			delete(p.memory.made, name)
			continue
		}
		all = append(all, m.instance)
	}
	p.instances = all
	p.timeStarts()
	return nil
}

// isThere reports whether a runner that the cache does not show exists.
func (p *pass) isThere(ctx context.Context, m madeRunner) (bool, error) {
	if p.now.Sub(m.at) < caughtUp {
		return true, nil
	}
	err := p.uncached.Get(ctx, client.ObjectKeyFromObject(&m.instance), &forgejov1.RunnerInstance{})
	return err == nil, errors.Wrapf(client.IgnoreNotFound(err), "cannot look for RunnerInstance %s", m.instance.Name)
}

// list the pool's own instances.
func (p *pass) list(ctx context.Context, c client.Reader) ([]forgejov1.RunnerInstance, error) {
	l := &forgejov1.RunnerInstanceList{}
	err := c.List(ctx, l, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelPool: p.key.Name})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot list the runners of pool %s", p.key.Name)
	}
	var own []forgejov1.RunnerInstance
	for _, i := range l.Items {
		if i.Spec.ForProvider.Pool.UID == p.runner.UID {
			own = append(own, i)
		}
	}
	return own, nil
}

// readState puts together what is decided about.
func (p *pass) readState(ctx context.Context) error {
	settings := p.runner.Spec.ForProvider.Settings
	look, id := p.look()
	p.state = State{
		Now: p.now, Settings: settings, Generation: p.runner.Generation, Look: look, Session: id.Session, Instances: p.instances, Plan: p.memory.plan,
	}
	config, err := p.readConfig(ctx)
	if err != nil {
		return err
	}
	p.state.Config = config
	p.state.Minimum, p.state.Gate = p.gate(ctx, config, id)
	p.ask(ctx, id)
	p.noteOffline(look)
	p.claim(look)
	return nil
}

// readConfig that runners are made with, nil if it is not known.
func (p *pass) readConfig(ctx context.Context) (*forgejov1.RunnerConfig, error) {
	operators := &forgejov1.ClusterProviderConfig{}
	err := p.client.Get(ctx, client.ObjectKey{Name: names.DefaultProviderConfig}, operators)
	if err != nil && !kerrors.IsNotFound(err) {
		return nil, errors.Wrapf(err, "cannot get the ClusterProviderConfig %s", names.DefaultProviderConfig)
	}
	c := configOf(p.runner.Spec.ForProvider.Settings, operators.Spec.RunnerImage)
	if c.Pod != nil && c.Pod.RunnerImage == "" {
		return nil, nil //nolint:nilnil // That no image is known is told by the gate.
	}
	return &c, nil
}

// ask for the registrations that the look does not list, once a look. What cannot be told is taken for there.
func (p *pass) ask(ctx context.Context, id LookID) {
	if p.memory.askedOf != id {
		p.memory.askedOf, p.memory.asked = id, map[int64]bool{}
	}
	p.state.Gone = p.memory.asked
	if p.state.Look == nil {
		return
	}
	var (
		mu   sync.Mutex
		runs bounded
	)
	for _, reg := range snapshotOf(p.state).unlisted(p.instances) {
		if _, ok := p.memory.asked[reg]; ok {
			continue
		}
		runs.Go(func() {
			_, err := p.session.Runner(ctx, reg)
			if gone := errors.Is(err, api.ErrGone); err == nil || gone {
				mu.Lock()
				defer mu.Unlock()
				p.memory.asked[reg] = gone
			}
		})
	}
	runs.Wait()
}

// noteOffline keeps since when registrations are listed as offline. A look that is missing ends that: a server that was away has
// not heard of anybody.
func (p *pass) noteOffline(look *server.Look) {
	since := map[int64]time.Time{}
	if look != nil {
		for id, r := range look.Runners {
			if r.Status != api.RunnerOffline {
				continue
			}
			since[id] = look.Began
			if t, ok := p.memory.offline[id]; ok {
				since[id] = t
			}
		}
	}
	p.memory.offline, p.state.Offline = since, since
}

// claim the jobs that are for this pool.
func (p *pass) claim(look *server.Look) {
	if look == nil {
		return
	}
	waiting := waitingJobs(look.Jobs)
	var d Decision
	snap := snapshotOf(p.state)
	d.count(p.state, snap)
	p.state.Jobs = p.claims.Bid(p.session.Server(), Bidder{
		Pool: p.key, Created: p.runner.CreationTimestamp.Time, Labels: p.state.Settings.Labels, Session: p.session.ID(),
		Open: p.state.Gate == nil, Room: max(0, int(p.state.Settings.MaxRunners)-d.Live) + d.Available,
		Pinned: pinned(p.instances, snap), Waiting: waiting,
	})
	p.bid = true
	p.unserved = p.claims.Unserved(p.session.Server(), othersCannot(waiting, look.Runners))
	p.noteWaiting()
}

// abstain from bidding, as a pool that cannot act: jobs that it made no runner for are for others meanwhile. Where the records
// cannot be read, others make no runners either.
func (p *pass) abstain(ctx context.Context) {
	if p.instances == nil && p.readInstances(ctx) != nil {
		return
	}
	p.claims.Close(p.key, pinned(p.instances, snapshotOf(p.state)))
}

// othersCannot are the jobs that no runner which is there could take, of a pool or not.
func othersCannot(waiting []api.Job, runners map[int64]api.Runner) []api.Job {
	var left []api.Job
	for _, j := range waiting {
		taken := false
		for _, r := range runners {
			taken = taken || r.Status != api.RunnerOffline && serves(r.Labels, j.RunsOn)
		}
		if !taken {
			left = append(left, j)
		}
	}
	return left
}

// noteWaiting keeps since when jobs are seen to wait.
func (p *pass) noteWaiting() {
	since := make(map[jobKey]time.Time, len(p.state.Jobs))
	for _, j := range p.state.Jobs {
		k := keyOf(queued(j))
		since[k] = p.now
		if t, ok := p.memory.waiting[k]; ok {
			since[k] = t
		}
	}
	p.memory.waiting = since
}

// bounded runs so many at a time.
type bounded struct {
	once sync.Once
	free chan struct{}
	wait sync.WaitGroup
}

// Go runs f when there is room.
func (b *bounded) Go(f func()) {
	b.once.Do(func() { b.free = make(chan struct{}, atATime) })
	b.free <- struct{}{}
	b.wait.Go(func() {
		defer func() { <-b.free }()
		f()
	})
}

// Wait for all.
func (b *bounded) Wait() { b.wait.Wait() }
