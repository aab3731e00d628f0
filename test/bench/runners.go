package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/cluster/local/platform"
	"github.com/steading-dev/steading/test/bench/figures"
	"github.com/steading-dev/steading/test/fakes/forgejo"
	"github.com/steading-dev/steading/test/fakes/runnernode"
	"github.com/steading-dev/steading/test/harness"
)

const (
	// runnersTenant has the pools, and its runners run in jobNamespace.
	runnersTenant = "runners"
	jobNamespace  = "runners-ci"
	// repository of all jobs.
	repository = "bench/web"
	// tokenSecret has the token that all pools share.
	tokenSecret = "forgejo-pat"
	// pace of the jobs that make a load.
	pace = time.Second
	// loadedMax is the maximum of pools under load.
	loadedMax = 20
	// settle is how often what is long is looked at, so that looking takes nothing from what is measured.
	settle = 200 * time.Millisecond
	// verdicts is how long those on the last runners may take.
	verdicts = 3 * time.Second
	// shortJob is what a job does.
	shortJob = "sleep: 200ms"
)

type runnersOptions struct {
	Poll       time.Duration `default:"5s" help:"How often runner pools look at their queue, in whole seconds, at least 5."`
	Pools      []int         `default:"1,10,100" help:"How many runner pools there are while the calls of Forgejo's API are counted, a step each, rising."`
	Window     time.Duration `default:"1m" help:"How long calls are counted, idle and under load each."`
	Jobs       int           `default:"1000" help:"Jobs in the long queue."`
	MaxRunners int           `default:"200" help:"Maximum of the pool that has the long queue."`
}

func (o runnersOptions) valid() error {
	switch {
	case len(o.Pools) == 0 || o.Pools[0] < 1 || !slices.IsSorted(o.Pools):
		return fmt.Errorf("cannot measure with %v runner pools: there has to be one at least, and the numbers have to rise", o.Pools)
	case o.Poll < 5*time.Second || o.Poll%time.Second != 0:
		return fmt.Errorf("cannot poll every %s: it takes whole seconds, five at least", o.Poll)
	case o.Window < o.Poll:
		return fmt.Errorf("cannot count calls for %s: pools poll every %s", o.Window, o.Poll)
	case o.MaxRunners < 1 || o.MaxRunners > 1000:
		return fmt.Errorf("cannot have %d runners at a time: a pool may have from 1 to 1000", o.MaxRunners)
	default:
		return nil
	}
}

// A runnersBench is a platform with a Forgejo, a node for runners, and so many pools.
type runnersBench struct {
	*platform.Platform
	options  runnersOptions
	admin    client.Client
	forgejo  *forgejo.Server
	queue    *queue
	children *children
	url      string
	pools    int
}

// measureRunners, from an empty queue with one pool to one with many. They are gone afterwards.
func (o *options) measureRunners(ctx context.Context, p *platform.Platform) (*figures.Runners, error) {
	r := &figures.Runners{Rounds: o.Rounds, PollSeconds: o.Runners.Poll.Seconds()}
	var err error
	if r.Circumstances, err = circumstances(ctx, p); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	b, err := newRunnersBench(ctx, p, o.Runners)
	if err != nil {
		return nil, err
	}
	if err := b.grow(ctx, 1); err != nil {
		return nil, err
	}
	if r.Spawn, err = b.spawn(ctx, o.Rounds); err != nil {
		return nil, err
	}
	if r.Queue, err = b.long(ctx); err != nil {
		return nil, err
	}
	for _, n := range o.Runners.Pools {
		calls, err := b.calls(ctx, n)
		if err != nil {
			return nil, err
		}
		r.Calls = append(r.Calls, calls)
	}
	r.Machine.LoadAtEnd = loadAverage()
	return r, b.leave(ctx)
}

func newRunnersBench(ctx context.Context, p *platform.Platform, o runnersOptions) (*runnersBench, error) {
	admin, err := harness.Client(p.Plane.Config())
	if err != nil {
		return nil, err
	}
	b := &runnersBench{Platform: p, options: o, admin: admin, forgejo: forgejo.New(forgejo.Options{})}
	b.queue = newQueue(b.forgejo)
	if b.url, err = serve(ctx, p.Plane.Address(), b.queue); err != nil {
		return nil, err
	}
	if err := b.home(ctx); err != nil {
		return nil, err
	}
	if b.children, err = watchChildren(ctx, p.Plane.Config(), jobNamespace); err != nil {
		return nil, err
	}
	_, err = runnernode.Start(ctx, p.Plane.Config(), runnernode.Options{})
	return b, err
}

// home of the pools: a user of Forgejo with a token, the tenant that has it, and a namespace for the runners.
func (b *runnersBench) home(ctx context.Context) error {
	if err := errors.Join(b.forgejo.AddUser("bench", true), b.forgejo.AddRepository("bench", "web", false)); err != nil {
		return err
	}
	token, err := b.forgejo.AddToken("bench", "write:admin")
	if err != nil {
		return err
	}
	if err := makeTenant(ctx, b.admin, runnersTenant); err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(runnersTenant), Name: tokenSecret},
		StringData: map[string]string{steading.DefaultTokenKey: token},
	}
	if err := b.admin.Create(ctx, secret); err != nil {
		return err
	}
	return b.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: jobNamespace, Labels: map[string]string{names.LabelRunnersFor: runnersTenant},
	}})
}

// grow to so many pools.
func (b *runnersBench) grow(ctx context.Context, n int) error {
	first := b.pools
	b.pools = max(first, n)
	for i := first; i < n; i++ {
		pool, err := b.pool(i)
		if err != nil {
			return err
		}
		if err := b.admin.Create(ctx, pool); err != nil {
			return err
		}
	}
	start := time.Now()
	defer func() {
		say("%d pools are ready, %.1f s after they were applied", b.pools, time.Since(start).Seconds())
	}()
	return b.eachReady(ctx)
}

// eachReady waits until every pool watches the queue as it is written now.
func (b *runnersBench) eachReady(ctx context.Context) error {
	return eventually(ctx, "runner pools ready", func(ctx context.Context) (bool, error) {
		l := &steading.RunnerPoolList{}
		err := b.admin.List(ctx, l, client.InNamespace(names.TenantNamespace(runnersTenant)))
		waits := slices.ContainsFunc(l.Items, func(p steading.RunnerPool) bool {
			c := p.Status.GetCondition("Ready")
			return c.Status != corev1.ConditionTrue || c.ObservedGeneration != p.Generation
		})
		return len(l.Items) == b.pools && !waits, err
	})
}

// pool number i serves the label of that number.
func (b *runnersBench) pool(i int) (*steading.RunnerPool, error) {
	t := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: steading.DefaultJobContainer, Image: "code.forgejo.org/oci/node:22"}}}}
	runnernode.Place(&t.Spec)
	raw, err := yaml.Marshal(t)
	if err == nil {
		raw, err = yaml.YAMLToJSON(raw)
	}
	return &steading.RunnerPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace(runnersTenant), Name: fmt.Sprintf("p%d", i)},
		Spec: steading.RunnerPoolSpec{
			Forgejo: steading.ForgejoServer{
				URL: b.url, Scope: steading.ForgejoScope{Instance: &steading.WholeScope{}},
				TokenSecretRef: steading.TokenSecretReference{Name: tokenSecret, Key: steading.DefaultTokenKey},
			},
			Labels: []string{label(i)}, JobNamespace: jobNamespace, MaxRunners: loadedMax,
			PollIntervalSeconds: int32(b.options.Poll.Seconds()), StartupTimeoutSeconds: 600, JobTimeoutSeconds: 3600,
			SuccessfulJobsHistoryLimit: 3, FailedJobsHistoryLimit: 1, Assignment: steading.AssignAny, Fairness: steading.FairnessNone,
			Pod: &steading.RunnerPod{JobContainer: steading.DefaultJobContainer, Template: runtime.RawExtension{Raw: raw}},
		},
	}, err
}

func label(pool int) string { return fmt.Sprintf("pool-%d", pool) }

// job for a pool.
func (b *runnersBench) job(pool int) (int64, error) {
	return b.forgejo.Queue(forgejo.NewJob{Repository: repository, Labels: []string{label(pool)}, Payload: shortJob})
}

// spawn is how long it takes from a job being seen to its runner's child being there, one at a time.
func (b *runnersBench) spawn(ctx context.Context, rounds int) (figures.Percentiles, error) {
	say("one job at a time, %d rounds", rounds)
	var took []time.Duration
	for range rounds {
		if err := b.quiet(ctx); err != nil {
			return figures.Percentiles{}, err
		}
		made := b.children.count()
		id, err := b.job(0)
		if err != nil {
			return figures.Percentiles{}, err
		}
		if err := b.idle(ctx); err != nil {
			return figures.Percentiles{}, err
		}
		all := b.children.since(made)
		if len(all) == 0 {
			return figures.Percentiles{}, fmt.Errorf("job %d ran, and no child was made for it", id)
		}
		took = append(took, all[0].Sub(b.queue.told(id)))
	}
	p := figures.PercentilesOf(took)
	say("from a job seen to its child: p50 %.3f s, p95 %.3f s", p.P50, p.P95)
	return p, nil
}

// idle waits until all jobs are run.
func (b *runnersBench) idle(ctx context.Context) error {
	return eventually(ctx, "all jobs run", func(ctx context.Context) (bool, error) {
		if err := pause(ctx, settle); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(b.forgejo.Jobs(), func(j forgejo.Job) bool {
			return j.Status == forgejo.StatusWaiting || j.Status == forgejo.StatusRunning
		}), nil
	})
}

// quiet waits until all runners are gone too. Those that have no job left for them are there until they are drained.
func (b *runnersBench) quiet(ctx context.Context) error {
	if err := b.idle(ctx); err != nil {
		return err
	}
	if err := pause(ctx, verdicts); err != nil || b.none() {
		return err
	}
	say("%d runners have no job left for them", len(b.registrations()))
	if err := b.suspend(ctx, true); err != nil {
		return err
	}
	err := eventually(ctx, "all runners gone", func(ctx context.Context) (bool, error) {
		return b.none(), pause(ctx, settle)
	})
	if err != nil {
		return err
	}
	if err := b.suspend(ctx, false); err != nil {
		return err
	}
	return b.eachReady(ctx)
}

// none reports whether there are no runners.
func (b *runnersBench) none() bool {
	return len(b.registrations()) == 0 && b.children.unfinished() == 0
}

// suspend the pools that have runners, or resume those that are suspended.
func (b *runnersBench) suspend(ctx context.Context, suspend bool) error {
	l := &steading.RunnerPoolList{}
	if err := b.admin.List(ctx, l, client.InNamespace(names.TenantNamespace(runnersTenant))); err != nil {
		return err
	}
	for i := range l.Items {
		p := &l.Items[i]
		if p.Spec.Suspend == suspend || suspend && p.Status.Live == 0 {
			continue
		}
		before := client.MergeFrom(p.DeepCopy())
		p.Spec.Suspend = suspend
		if err := b.admin.Patch(ctx, p, before); err != nil {
			return err
		}
	}
	return nil
}

// registrations that there are.
func (b *runnersBench) registrations() []forgejo.Registration {
	return slices.DeleteFunc(b.forgejo.Registrations(), func(r forgejo.Registration) bool { return !r.Deleted.IsZero() })
}

// leave nothing.
func (b *runnersBench) leave(ctx context.Context) error {
	start := time.Now()
	in := client.InNamespace(names.TenantNamespace(runnersTenant))
	if err := b.admin.DeleteAllOf(ctx, &steading.RunnerPool{}, in); err != nil {
		return err
	}
	err := eventually(ctx, "runner pools gone", func(ctx context.Context) (bool, error) {
		l := &steading.RunnerPoolList{}
		err := b.admin.List(ctx, l, in)
		return len(l.Items) == 0, err
	})
	say("%d pools were gone %.1f s after they were deleted", b.pools, time.Since(start).Seconds())
	return err
}

// serve a handler at a free port of an address until ctx is done, and return its URL.
func serve(ctx context.Context, address string, h http.Handler) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }() // It ends with the process.
	context.AfterFunc(ctx, func() { _ = s.Close() })
	return "http://" + l.Addr().String(), nil
}
