package instance

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/steading-dev/steading/apis/forgejo/v1alpha1"
	"github.com/steading-dev/steading/apis/names"
	steading "github.com/steading-dev/steading/apis/v1alpha1"
	"github.com/steading-dev/steading/providers/forgejo/api"
	"github.com/steading-dev/steading/providers/forgejo/server"
	"github.com/steading-dev/steading/providers/internal/kit"
)

// Options of the controller.
type Options struct {
	kit.Options
	// Servers that runners are registered with.
	Servers *server.Servers
	// LetGoAfter is how long deregistration is tried when a runner is deleted. Zero: two minutes.
	LetGoAfter time.Duration
}

// letGoAfter is the default of [Options.LetGoAfter].
const letGoAfter = 2 * time.Minute

// Outside are the kinds that runners are made of, as far as every cluster has them.
func Outside() []client.Object { return []client.Object{&batchv1.Job{}, &corev1.Pod{}} }

// Setup adds the controller of RunnerInstances to the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	m, err := metadata.NewForConfig(mgr.GetConfig())
	if err != nil {
		return errors.Wrap(err, "cannot make a client that watches virtual machines")
	}
	vms := newMachines(m)
	if err := mgr.Add(vms); err != nil {
		return errors.Wrap(err, "cannot add the watch of virtual machines to the manager")
	}
	c := &connector{
		o:          o.Options,
		servers:    sessions{o.Servers},
		children:   children{client: mgr.GetClient(), cached: mgr.GetClient(), uncached: mgr.GetAPIReader()},
		marks:      &marks{},
		tracker:    kit.NewTracker(mgr.GetClient(), &v1alpha1.ProviderConfigUsage{}),
		letGoAfter: o.LetGoAfter,
	}
	if c.letGoAfter == 0 {
		c.letGoAfter = letGoAfter
	}
	b := kit.Watch(mgr, &v1alpha1.RunnerInstance{}, v1alpha1.RunnerInstanceKind, o.Options)
	b = kit.WatchRunnerPoolClaims(b, deletedOf(mgr.GetClient())).
		WatchesRawSource(o.Servers.Instances()).
		WatchesRawSource(vms.source())
	for _, made := range Outside() {
		b = b.Watches(made, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request { return requestFor(obj) }))
	}
	r := kit.Reconciler(mgr, v1alpha1.GroupVersion.WithKind(v1alpha1.RunnerInstanceKind), o.Options, claimOf, c)
	return errors.Wrap(b.Complete(r), "cannot set up the controller of runner instances")
}

// requestFor the RunnerInstance that an object of a job namespace belongs to.
func requestFor(obj interface{ GetLabels() map[string]string }) []reconcile.Request {
	name := obj.GetLabels()[names.LabelRunner]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: names.SystemNamespace, Name: name}}}
}

// deletedOf names the instances of a pool that are being deleted, and so may wait for an operator's word.
func deletedOf(c client.Reader) func(ctx context.Context, tenant, pool string) []string {
	return func(ctx context.Context, tenant, pool string) []string {
		l := &v1alpha1.RunnerInstanceList{}
		err := c.List(ctx, l, client.InNamespace(names.SystemNamespace), client.MatchingLabels{names.LabelPool: names.Runner(tenant, pool)})
		if err != nil {
			return nil
		}
		var all []string
		for _, i := range l.Items {
			if i.DeletionTimestamp != nil {
				all = append(all, i.Name)
			}
		}
		return all
	}
}

// sessions are [Servers] by package server.
type sessions struct{ *server.Servers }

// Session with a server.
func (s sessions) Session(ctx context.Context, f steading.ForgejoServer, namespace string) (Server, error) {
	one, err := s.Servers.Session(ctx, f, namespace)
	if err != nil {
		return nil, err
	}
	return session{one}, nil
}

// session is a [Server] by package server.
type session struct{ *server.Session }

func (s session) Register(ctx context.Context, name, description string) (api.Registration, error) {
	return s.Client().Register(ctx, name, description)
}

func (s session) Deregister(ctx context.Context, id int64) error {
	return s.Client().Deregister(ctx, id)
}

func (s session) Runners(ctx context.Context) ([]api.Runner, error) { return s.Client().Runners(ctx) }

func (s session) Jobs(ctx context.Context, labels []string) ([]api.Job, error) {
	return s.Client().Jobs(ctx, labels)
}

func (s session) Recovered() (at time.Time, outage time.Duration) {
	p := s.Poll()
	if p.Outcome != steading.PollSucceeded || p.Outage == 0 {
		return time.Time{}, 0
	}
	return p.Since, p.Outage
}

func (s session) Listed(id int64) (*api.Runner, time.Time) {
	look, ok := s.Look()
	if !ok {
		return nil, time.Time{}
	}
	if r, ok := look.Runners[id]; ok {
		return &r, look.Began
	}
	return nil, look.Began
}
